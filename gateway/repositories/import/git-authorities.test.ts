import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getCACertificates } from "node:tls";
import { expect } from "chai";
import { configFromEnvironment } from "../../../scripts/config.ts";
import { roles } from "../../../scripts/roles.ts";
import { selfSignedCertificate } from "../../../scripts/testing/self-signed-certificate.ts";
import { readAuthorities } from "./git-authorities.ts";

describe("readAuthorities()", () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "trunkline-authorities-"));
  });
  after(() => rm(folder, { recursive: true }));

  it("adds the file's certificates to the default ones", async () => {
    const [one, other] = [selfSignedCertificate("one"), selfSignedCertificate("other")];
    const path = join(folder, "two.pem");
    await writeFile(path, `# ours\n${one.cert}${other.cert}`);
    const read = readAuthorities(path) ?? "";
    expect(read).to.contain(one.cert.trim()).and.to.contain(other.cert.trim());
    for (const known of getCACertificates("default")) expect(read).to.contain(known.trim());
    expect(readAuthorities(undefined)).to.equal(undefined);
  });

  it("stops the start with one line that names the setting if the file holds no certificates", async () => {
    const { key, cert } = selfSignedCertificate("one");
    const files = {
      "empty.pem": ["", "has no certificate in PEM"],
      "key.pem": [key, "has no certificate in PEM"],
      "cut.pem": [cert.replace(/\n.{64}\n/, "\n"), "has a certificate that cannot be read"],
    } as const;
    for (const [name, [content]] of Object.entries(files)) {
      await writeFile(join(folder, name), content);
    }
    const faults = { ...files, "none.pem": ["", "cannot be read (ENOENT)"] };
    const gateway = roles.find(({ role }) => role === "gateway");
    for (const [name, [, why]] of Object.entries(faults)) {
      const path = join(folder, name);
      const config = configFromEnvironment({ TRUNKLINE_GIT_CA: path });
      expect(() => gateway?.check?.(config), name).to.throw(
        `TRUNKLINE_GIT_CA: expected the path of a file of certificates in PEM, found "${path}", which ${why}`,
      );
    }
  });
});

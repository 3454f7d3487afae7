import { writeFile } from "node:fs/promises";
import { createServer as createTlsServer } from "node:https";
import { join } from "node:path";
import { expect } from "chai";
import { freePort } from "../../free-port.ts";
import { DoctorScene } from "../../testing/doctor-scene.ts";
import { listen } from "../../testing/loopback-server.ts";
import { startNats } from "../../testing/nats-server.ts";
import { selfSignedCertificate } from "../../testing/self-signed-certificate.ts";
import type { Level } from "./check.ts";

describe("doctor's check of certificates", function () {
  this.timeout(120_000);
  let scene: DoctorScene;
  let folder: string;
  beforeEach(async () => {
    scene = await DoctorScene.make();
    folder = scene.folder;
  });
  afterEach(() => scene[Symbol.asyncDispose]());

  const ends: [end: string, level: Level, found: RegExp][] = [
    ["240101000000Z", "failure", /^expired at Jan {2}1/],
    [inDays(3), "warning", /^2 days left$/],
    ["490101000000Z", "warning", /^DEPTH_ZERO_SELF_SIGNED_CERT$/],
  ];
  for (const [end, level, found] of ends) {
    it(`of the public URL that ends ${end} is a ${level}`, async () => {
      const server = createTlsServer(selfSignedCertificate("localhost", end), (_, response) =>
        response.end(),
      );
      await using listening = await listen(server, "127.0.0.1");
      const TRUNKLINE_PUBLIC_URL = `https://localhost:${listening.port}`;
      const one = await scene.finding(["certificates"], { TRUNKLINE_PUBLIC_URL });
      expect(one.level).to.equal(level);
      expect(one.found).to.match(found);
    });
  }

  it("that cannot be read because nobody listens is a warning", async () => {
    const TRUNKLINE_PUBLIC_URL = `https://localhost:${await freePort()}`;
    const { level, found } = await scene.finding(["certificates"], { TRUNKLINE_PUBLIC_URL });
    expect(level).to.equal("warning");
    expect(found).to.include("ECONNREFUSED");
  });

  it("of the bus that has expired is a failure", async () => {
    const { key, cert } = selfSignedCertificate("localhost", "240101000000Z");
    await writeFile(join(folder, "key.pem"), key);
    await writeFile(join(folder, "cert.pem"), cert);
    await using server = await startNats({
      config: `tls { cert_file: "${folder}/cert.pem", key_file: "${folder}/key.pem" }`,
    }).catch((error) => {
      throw error;
    });
    const TRUNKLINE_NATS_URL = server.url
      .replace("nats:", "tls:")
      .replace("127.0.0.1", "localhost");
    const { level, about, found, mend } = await scene.finding(["certificates"], {
      TRUNKLINE_NATS_URL,
    });
    expect({ level, about }).to.deep.equal({
      level: "failure",
      about: "certificate of the bus at localhost",
    });
    expect(found).to.match(/^expired at/);
    expect(mend).to.match(/^make a new certificate .* nats-server --signal reload=<pid>$/);
    const ofAuthority = await scene.finding(["certificates"], {
      TRUNKLINE_NATS_URL: `nats://127.0.0.1:${await freePort()}`,
      TRUNKLINE_NATS_CA: join(folder, "cert.pem"),
    });
    expect(ofAuthority).to.include({ level: "failure", about: "TRUNKLINE_NATS_CA", mend });
  });

  it("of an authority that has expired is a warning, and a file without one a failure", async () => {
    const file = join(folder, "ca.pem");
    await writeFile(file, selfSignedCertificate("ca", "240101000000Z").cert);
    const { level, mend } = await scene.finding(["certificates"], { TRUNKLINE_GIT_CA: file });
    expect(level).to.equal("warning");
    expect(mend).to.include("certificate of this authority");
    await writeFile(file, "none");
    expect((await scene.finding(["certificates"], { TRUNKLINE_GIT_CA: file })).level).to.equal(
      "failure",
    );
  });
});

/** Formats the time in `days` days as certificates do. */
function inDays(days: number): string {
  const at = new Date(Date.now() + days * 86_400_000).toISOString();
  return `${at.slice(2, 19).replace(/[-:T]/g, "")}Z`;
}

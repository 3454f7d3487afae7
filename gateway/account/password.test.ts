import { readdirSync } from "node:fs";
import { stat } from "node:fs/promises";
import { expect } from "chai";
import { processStat } from "../../scripts/testing/process-stat.ts";
import { hashPassword, passwordMatches } from "./password.ts";

const HERE = { from: "test", network: "test" };

describe("password", () => {
  it("passwordMatches() accepts only the password; two hashes of one password differ", async () => {
    const [one, other] = await Promise.all([
      hashPassword("s3cret é", HERE),
      hashPassword("s3cret é", HERE),
    ]);
    expect(one).to.match(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$[\w+/]{22}\$[\w+/]{43}$/);
    expect(one).not.to.equal(other);
    expect(await passwordMatches("s3cret é", one, HERE)).to.equal(true);
    expect(await passwordMatches("s3cret e\u0301", one, HERE)).to.equal(true);
    expect(await passwordMatches("s3cret e", one, HERE)).to.equal(false);
  });

  it("passwordMatches() reads a hash with other cost parameters, and refuses another scheme", async () => {
    // The first 32 bytes of the test vector for "pleaseletmein" in RFC 7914 section 12.
    const stored = `scrypt$16384$8$1$${Buffer.from("SodiumChloride").toString("base64url")}$${Buffer.from(
      "7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2",
      "hex",
    ).toString("base64url")}`;
    expect(await passwordMatches("pleaseletmein", stored, HERE)).to.equal(true);
    const refused = await passwordMatches("x", "md5$x", HERE).catch((error: unknown) => error);
    expect(String(refused)).to.contain('"md5"');
  });

  it("hashPassword() takes its time on threads that yield to all others", async () => {
    const before = processorMs();
    await Promise.all(Array.from({ length: 8 }, () => hashPassword("s3cret", HERE)));
    const after = processorMs();
    expect(after.yielding - before.yielding).to.be.above(2 * (after.normal - before.normal));
  });

  it("hashPassword() leaves the threads of file access free", async () => {
    let hashed = 0;
    const hashes = Array.from({ length: 8 }, async () => {
      await hashPassword("s3cret", HERE);
      hashed++;
    });
    await stat(import.meta.filename);
    expect(hashed).to.equal(0);
    await Promise.all(hashes);
  });
});

/** Processor time of the threads of this process: of those with normal priority, and of those with a lower one. */
function processorMs() {
  const sums = { normal: 0, yielding: 0 };
  for (const thread of readdirSync("/proc/self/task")) {
    const { processorMs = 0, niceness = 0 } = processStat("self", thread) ?? {};
    sums[niceness > 0 ? "yielding" : "normal"] += processorMs;
  }
  return sums;
}

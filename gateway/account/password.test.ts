import { expect } from "chai";
import {
  hashPassword,
  PASSWORD_HASHES_AT_ONCE,
  PASSWORD_HASHES_WAITING_MAX,
  passwordMatches,
} from "./password.ts";

describe("password", () => {
  it("passwordMatches() accepts only the password; two hashes of one password differ", async () => {
    const [one, other] = await Promise.all([hashPassword("s3cret é"), hashPassword("s3cret é")]);
    expect(one).to.match(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$[\w+/]{22}\$[\w+/]{43}$/);
    expect(one).not.to.equal(other);
    expect(await passwordMatches("s3cret é", one)).to.equal(true);
    expect(await passwordMatches("s3cret e\u0301", one)).to.equal(true);
    expect(await passwordMatches("s3cret e", one)).to.equal(false);
  });

  it("passwordMatches() reads a hash with other cost parameters, and refuses another scheme", async () => {
    // The first 32 bytes of the test vector for "pleaseletmein" in RFC 7914 section 12.
    const stored = `scrypt$16384$8$1$${Buffer.from("SodiumChloride").toString("base64url")}$${Buffer.from(
      "7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2",
      "hex",
    ).toString("base64url")}`;
    expect(await passwordMatches("pleaseletmein", stored)).to.equal(true);
    const refused = await passwordMatches("x", "md5$x").catch((error: unknown) => error);
    expect(String(refused)).to.contain('"md5"');
  });

  it("hashPassword() accepts calls up to the limits of running and waiting ones, and refuses one more at once", async function () {
    this.timeout(60_000);
    const count = PASSWORD_HASHES_AT_ONCE + PASSWORD_HASHES_WAITING_MAX;
    const all = Array.from({ length: count }, () => hashPassword("s3cret"));
    const refused = await hashPassword("s3cret").catch((error: unknown) => error);
    expect(refused).to.deep.include({ code: "busy" });
    expect(await Promise.all(all)).to.have.length(count);
    expect(await hashPassword("s3cret")).to.match(/^\$argon2id/);
  });
});

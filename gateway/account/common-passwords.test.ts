import { expect } from "chai";
import { isCommonPassword } from "./common-passwords.ts";

describe("isCommonPassword()", () => {
  const email = "Ada.Lovelace@example.com";

  it("is true for the passwords that attackers try first, in any case and with a trailing mark", async () => {
    for (const password of [
      "password",
      "PASSWORD1!",
      "iloveyou",
      "1q2w3e4r",
      "trustno1",
      "zzzzzzzz",
    ]) {
      expect(await isCommonPassword(password, email), password).to.equal(true);
    }
  });

  it("is true for the person's own address and name", async () => {
    for (const password of ["ada.lovelace@EXAMPLE.com", "ada.lovelace", "Ada.Lovelace!"]) {
      expect(await isCommonPassword(password, email), password).to.equal(true);
    }
  });

  it("is false for passwords that are hard to guess", async () => {
    for (const password of ["correct horse", "analytical engine", "password of the hostile page"]) {
      expect(await isCommonPassword(password, email), password).to.equal(false);
    }
  });
});

import { expect } from "chai";
import { ERRORS } from "./errors.ts";

describe("ERRORS", () => {
  it("gives every refusal a public code of its own, an HTTP status and a meaning", () => {
    const codes = Object.values(ERRORS).map(({ code }) => code);
    expect(new Set(codes).size).to.equal(codes.length);
    for (const [name, { code, status, meaning }] of Object.entries(ERRORS)) {
      expect(name).to.match(/^[a-z0-9]+(_[a-z0-9]+)*$/);
      expect(code, name).to.be.within(1_000, 99_999);
      expect(status, name).to.be.within(400, 599);
      expect(meaning, name).to.match(/^[A-Z].*[^.]$/);
    }
  });
});

import { expect } from "chai";
import { REF_RESULTS } from "../../../schemas/repositories/ref-command.ts";
import { reasonOf } from "./commit-push.ts";

describe("reasonOf()", () => {
  it("prefers the fault of one ref to the failures that it causes in an atomic push", () => {
    const { a, t } = REF_RESULTS;
    expect(reasonOf([a, undefined, t, a])).to.equal(t);
    expect(reasonOf([undefined, a])).to.equal(a);
    expect(reasonOf([undefined, undefined])).to.equal(undefined);
  });
});

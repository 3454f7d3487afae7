import { expect } from "chai";
import { REF_RESULTS } from "../../../schemas/repositories/ref-command.ts";
import { changeRefused, type RefFault, reasonOf } from "./commit-push.ts";

const faultOf = (result: RefFault["result"]): RefFault => ({ result, text: REF_RESULTS[result] });

describe("reasonOf()", () => {
  it("prefers the fault of one ref to the failures that it causes in an atomic push", () => {
    const [a, t] = [faultOf("a"), faultOf("t")];
    expect(reasonOf([a, undefined, t, a])).to.equal(t);
    expect(reasonOf([undefined, a])).to.equal(a);
    expect(reasonOf([undefined, undefined])).to.equal(undefined);
  });
});

describe("changeRefused()", () => {
  it("is storage_full past the limit of the repository, whatever the text says", () => {
    const full = changeRefused("Cannot commit", { result: "q", text: "no room" });
    expect([full.code, full.message]).to.deep.equal(["storage_full", "Cannot commit: no room"]);
    const moved = changeRefused("Cannot commit", { result: "f", text: REF_RESULTS.q });
    expect(moved.code).to.equal("conflict");
  });
});

import { expect } from "chai";
import { checkBound } from "./check-bound.ts";

const bound = { artifacts: [{ binding: "A", namespace: "Space" }], browser: { binding: "B" } };
const none = { artifacts: [], browser: undefined };

describe("checkBound()", () => {
  it("lets an app reach the namespaces and the browser that its configuration binds", () => {
    for (const name of ["Space", "space"]) checkBound(bound, "artifacts", name);
    checkBound(bound, "browser", undefined);
  });

  it("refuses other namespaces, and names those that are bound", () => {
    for (const name of ["other", "", undefined, "space/../other"]) {
      expect(() => checkBound(bound, "artifacts", name)).to.throw(/binds the namespaces "Space"/);
    }
  });

  it("refuses an app without the binding", () => {
    expect(() => checkBound(none, "artifacts", "space")).to.throw(/no artifacts binding/);
    expect(() => checkBound(none, "browser", undefined)).to.throw(/no browser binding/);
  });
});

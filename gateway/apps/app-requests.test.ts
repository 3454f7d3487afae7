import { expect } from "chai";
import { ActorError } from "../../schemas/errors.ts";
import { withoutInside } from "./app-requests.ts";

describe("requests to apps", () => {
  it("withoutInside() tells nobody what code of an app threw, and everything else as it is", () => {
    for (const code of ["app_failed", "app_broken"] as const) {
      const told = withoutInside(new ActorError(code, "Cannot start the app: a secret"));
      expect(told).to.have.property("code", code);
      expect(String(told)).not.to.include("secret");
    }
    const others = [new ActorError("busy", "Cannot take more"), new TypeError("x")];
    for (const other of others) expect(withoutInside(other)).to.equal(other);
  });
});

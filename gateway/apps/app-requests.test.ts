import { expect } from "chai";
import { ActorError } from "../../schemas/errors.ts";
import { withoutInside } from "./app-requests.ts";

describe("requests to apps", () => {
  it("withoutInside() hides what app code threw, and leaves other errors as they are", () => {
    for (const code of ["app_failed", "app_broken"] as const) {
      const told = withoutInside(new ActorError(code, "Cannot start the app: a secret"));
      expect(told).to.have.property("code", code);
      expect(String(told)).not.to.include("secret");
    }
    const bound = "code held it for 10000 ms without a pause";
    const ended = new ActorError("app_failed", "Cannot finish: a secret", { bound });
    expect(withoutInside(ended))
      .to.have.property("message")
      .that.equals(`Cannot answer: the app's process has ended: ${bound}`);
    const others = [new ActorError("busy", "Cannot take more"), new TypeError("x")];
    for (const other of others) expect(withoutInside(other)).to.equal(other);
  });
});

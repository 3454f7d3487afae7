import { expect } from "chai";
import { refusal } from "../../../scripts/testing/refusal.ts";
import { runHandler } from "../../../scripts/testing/run-handler.ts";
import { repoTokenActor } from "./repo-token.ts";

const issued = { repoId: "0".repeat(16), forgetAt: 5_000 };

describe("repo-token", () => {
  it("issue() stores the token's repository and expiry, and may be repeated", () => {
    const first = runHandler(repoTokenActor, "issue", repoTokenActor.initial, issued);
    expect(first.remind).to.deep.equal({ forget: 5_000 });
    expect(runHandler(repoTokenActor, "find", first.state, {}).reply).to.deep.equal({
      repoId: issued.repoId,
    });
    expect(runHandler(repoTokenActor, "issue", first.state, issued).changed).to.equal(false);
    const other = { ...issued, repoId: "1".repeat(16) };
    expect(refusal(() => runHandler(repoTokenActor, "issue", first.state, other)).code).to.equal(
      "conflict",
    );
  });

  it("find() refuses unknown and forgotten tokens", () => {
    const unknown = refusal(() => runHandler(repoTokenActor, "find", repoTokenActor.initial, {}));
    expect(unknown.code).to.equal("not_found");
    const { state } = runHandler(repoTokenActor, "issue", repoTokenActor.initial, issued);
    expect(runHandler(repoTokenActor, "forget", state, {}).forgotten).to.equal(true);
    expect(runHandler(repoTokenActor, "forget", repoTokenActor.initial, {}).forgotten).to.equal(
      true,
    );
  });
});

import { expect } from "chai";
import { runHandler } from "../../../scripts/testing/run-handler.ts";
import { installationActor } from "./installation.ts";

const first = { accountId: "1".repeat(32) };
const second = { accountId: "2".repeat(32) };

describe("installation", () => {
  it("claim() grants the first caller, also if it repeats, and returns the winner to all later ones", () => {
    const unclaimed = runHandler(installationActor, "get", installationActor.initial, {});
    expect(unclaimed.reply).to.deep.equal({ accountId: null });
    const { state, reply } = runHandler(
      installationActor,
      "claim",
      installationActor.initial,
      first,
    );
    expect(reply).to.deep.equal(first);
    expect(runHandler(installationActor, "get", state, {}).reply).to.deep.equal(first);
    for (const input of [first, second]) {
      const later = runHandler(installationActor, "claim", state, input);
      expect(later).to.deep.include({ changed: false, reply: first });
    }
  });
});

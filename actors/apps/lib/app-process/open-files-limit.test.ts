import { expect } from "chai";
import { APP_AGENT_FILES, APP_PROCESS_FILES, agentsByOpenFiles } from "./open-files-limit.ts";

describe("agentsByOpenFiles()", () => {
  it("leaves room for the files of the process, and is never zero", () => {
    const room = (agents: number) => APP_PROCESS_FILES + agents * APP_AGENT_FILES;
    expect([room(5_000) - 1, room(5_000), room(1), 0].map(agentsByOpenFiles)).to.deep.equal([
      ...[4_999, 5_000, 1, 1],
    ]);
    expect(agentsByOpenFiles()).to.be.greaterThan(100);
  });
});

import { expect } from "chai";
import { simulate } from "./simulate.ts";

const costs = {
  changesPerStream: 20_000,
  ...{ mailPerStream: 10_000, tasksPerStream: 1_000, agentCommitsPerStream: 2_000 },
  ...{ messagesPerHost: 20, messagesPerShard: 1, coresPerHost: 0.01, coresPerShard: 0.001 },
};
const scene = {
  ...{ hosts: 100, hostsPerRack: 10, shards: 512, actorsPerHost: 1_000 },
  changesPerSecond: 100_000,
  ...{ mailPerSecond: 30_001, tasksPerSecond: 1_000, agentCommitsPerSecond: 2_500 },
  ...{ agentBytes: 3e12, packBytes: 7e12, serverBytes: 1e12 },
};

describe("simulate()", () => {
  it("moves exactly the shards of the hosts that died", () => {
    const { rack, stateStreams, idleMessagesPerSecond } = simulate(scene, costs);
    // A rack should own about a tenth of the shards. The range is four standard deviations of a binomial
    // distribution, each 7.
    expect(rack.shards).to.be.within(51 - 28, 51 + 28);
    expect(rack.actors).to.equal((rack.shards / 512) * 100_000);
    expect(rack.epochMessages).to.equal(2 * rack.shards * 90);
    expect(rack.longestRun).to.be.above(0).and.below(10);
    expect(stateStreams).to.equal(5);
    expect(idleMessagesPerSecond).to.equal(2_512);
  });

  it("counts streams by their rate, and by what one server should store", () => {
    const { mailStreams, taskStreams, agentStreams, packStreams } = simulate(scene, costs);
    expect({ mailStreams, taskStreams, agentStreams, packStreams }).to.deep.equal({
      ...{ mailStreams: 4, taskStreams: 1, agentStreams: 3, packStreams: 7 },
    });
    const busy = { ...scene, agentCommitsPerSecond: 8_001 };
    expect(simulate(busy, costs).agentStreams).to.equal(5);
  });

  it("a host without others has every shard, and a rack of none moves none", () => {
    const found = simulate({ ...scene, hosts: 1, hostsPerRack: 0 }, costs);
    expect(found.busiest).to.equal(1);
    expect(found.rack.shards).to.equal(0);
  });
});

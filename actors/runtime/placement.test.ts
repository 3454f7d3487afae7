import { expect } from "chai";
import { SHARDS } from "../../schemas/limits.ts";
import { startWorld } from "../../scripts/testing/actor-world.ts";
import { counter, counterActor } from "../../scripts/testing/counter.ts";
import { until } from "../../scripts/testing/until.ts";

describe("Placement", () => {
  it("start() of several hosts at once: each sees all of them and every shard has one owner", async () => {
    await using world = await startWorld({ definitions: [counterActor] });
    const hosts = await Promise.all(
      ["a", "b", "c"].map((name) => world.host({ name, complete: false })),
    );
    await until("every host sees all owners", () => {
      const open = hosts.reduce((sum, { placement }) => sum + placement.openShards, 0);
      return open === SHARDS && hosts.every(({ placement }) => placement.isComplete);
    });
    expect(await world.client.call(counter, "a", "increment", { by: 1 })).to.deep.equal({
      count: 1,
    });
  });
});

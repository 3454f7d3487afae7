import { expect } from "chai";
import { allMail, mailIn } from "../../../schemas/split-streams.ts";
import { addressOf, STREAMS } from "../../../schemas/subjects.ts";
import { startWorld } from "../../../scripts/testing/actor-world.ts";
import { counter, counterActor } from "../../../scripts/testing/counter.ts";
import { preferredHost } from "../../../scripts/testing/preferred-host.ts";
import { until } from "../../../scripts/testing/until.ts";

const KEYS = Array.from({ length: 40 }, (_, index) => `key-${index}`);

describe("Placement with other numbers of shards", function () {
  this.timeout(120_000);

  for (const [shards, buckets, mailStreams] of [
    [8, 1, 1],
    [64, 2, 4],
    [512, 4, 2],
  ] as const) {
    it(`${shards} shards in ${buckets} state and ${mailStreams} mail streams: calls, mail, operators, joins and leaves`, async () => {
      const layout = { mailStreams };
      await using world = await startWorld({
        definitions: [counterActor],
        shards,
        buckets,
        layout,
      });
      const { client, bus } = world;
      const first = await world.host({ name: "a" });
      expect(first.placement.openShards).to.equal(shards);
      await Promise.all(KEYS.map((key) => client.call(counter, key, "increment", { by: 1 })));
      const used = new Set(KEYS.map((key) => bus.shardOf(addressOf("counter", key))));
      expect(used.size).to.be.greaterThan(Math.min(shards, KEYS.length) / 2);
      expect(Math.max(...used)).to.be.lessThan(shards);

      const second = await world.host({ name: "b" });
      await until("the shards are where they belong", () => {
        const ids = [first, second].map(({ placement }) => placement.hostId);
        const belongTo = (id: string) =>
          Array.from({ length: shards }, (_, shard) => preferredHost(shard, ids)).filter(
            (preferred) => preferred === id,
          ).length;
        return [first, second].every(
          ({ placement }) => placement.openShards === belongTo(placement.hostId),
        );
      });
      // Mail between the hosts, and mail of a client, which has no outbox.
      await Promise.all(
        KEYS.map((key) => client.call(counter, key, "give", { to: `${key}-to`, by: 1 })),
      );
      await Promise.all(KEYS.map((key) => client.send(counter, `${key}-to`, "receive", { by: 1 })));
      await until("all mail has arrived", async () => (await world.mailWaiting()) === 0);
      for (const key of KEYS) {
        const { count } = await client.call(counter, `${key}-to`, "get", {});
        expect(count, key).to.equal(2);
      }
      for (const { stream } of allMail(bus.layout)) {
        const { state } = await bus.jetstream.streams.info(stream);
        expect(state.last_seq, stream).to.be.above(0);
      }
      const call = JSON.stringify({ message: "get", input: {} });
      for (const key of KEYS) {
        const reply = await bus.connection.request(`actor.counter.${key}`, call, {
          timeout: 20_000,
        });
        expect(reply.string(), key).to.include('"count":0');
      }
      await first.stop();
      await until("the second has all", () => second.placement.openShards === shards, 60_000);
      expect(await client.call(counter, KEYS[0] ?? "", "get", {})).to.deep.equal({ count: 0 });
    });
  }

  it("mail goes to the shard among the stored number", async () => {
    await using world = await startWorld({ definitions: [counterActor], shards: 8 });
    const address = addressOf("counter", "key-3");
    await world.client.send(counter, "key-3", "receive", { by: 1 });
    const subject = mailIn(0).to(world.bus.shardOf(address), address);
    expect(await world.count(STREAMS.mail, subject)).to.equal(1);
  });
});

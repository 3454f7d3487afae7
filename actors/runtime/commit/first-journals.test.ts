/** Tests a store of the first release, whose hosts kept their journals in the bucket's own stream. */
import { headers } from "@nats-io/transport-node";
import { expect } from "chai";
import { SHARDS } from "../../../schemas/limits.ts";
import { addressOf, shardOf } from "../../../schemas/subjects.ts";
import { startWorld, type World } from "../../../scripts/testing/actor-world.ts";
import { counter, counterActor } from "../../../scripts/testing/counter.ts";
import { until } from "../../../scripts/testing/until.ts";
import { Epoch } from "../placement/epoch.ts";

const KEYS = ["noted", "earlier", "later", "both", "lost"];
const shardOfKey = (key: string) => shardOf(addressOf("counter", key));

/** Writes the data that two dead hosts left; one of them had taken a shard of the other. */
async function leaveStore({ bus, subjects }: World): Promise<void> {
  const jetstream = bus.jetstream.jetstream();
  const publish = async (key: string, content: unknown, from?: number) => {
    const { seq } = await jetstream.publish(subjects.ofBucketKey(key), JSON.stringify(content), {
      ...(from !== undefined && { headers: journalHeader(from) }),
    });
    return seq;
  };
  const state = (count: number) => ({
    rows: 0,
    state: { count },
    mail: 0,
    reminders: {},
    replies: {},
  });
  const commit = (number: number, counts: Record<string, number>) => ({
    number,
    entries: Object.entries(counts).map(([key, count]) => ({
      shard: shardOfKey(key),
      owner: `counter.${key}`,
      puts: { [`counter.${key}`]: state(count) },
      removed: [],
    })),
  });
  await publish("counter.earlier", state(1));
  await publish("journal.one.0", commit(0, { noted: 9 }));
  const from = await publish(
    "journal.one.1",
    commit(1, { earlier: 2, later: 2, both: 2, lost: 2 }),
  );
  await publish("counter.noted", state(4));
  await publish("counter.later", state(5), from + 10_000);
  await publish("journal.two.0", commit(0, { both: 3 }));
  await publish("journal.one.note", { below: 1, from, lost: {} });
  for (let shard = 0; shard < SHARDS; shard++)
    await publish(`epoch.${shard}`, { host: "one", journals: [] });
  await publish(`epoch.${shardOfKey("both")}`, { host: "two", journals: ["one"] });
  await publish(`epoch.${shardOfKey("lost")}`, { host: null, journals: ["one"] });
}

describe("a store of the first release", function () {
  this.timeout(90_000);

  it("opens with all commits of its journals, and then removes the journals", async () => {
    expect(new Set(KEYS.map(shardOfKey)).size).to.equal(KEYS.length);
    await using world = await startWorld({ definitions: [counterActor] });
    await leaveStore(world);
    let host = await world.host({ name: "new" });
    const counts = () =>
      Promise.all(
        KEYS.map(async (key) => (await world.client.call(counter, key, "get", {})).count),
      );
    expect(await counts()).to.deep.equal([4, 2, 5, 3, 2]);
    const { stream, firstJournals, epoch } = world.subjects;
    await until("its journals are removed", async () => {
      return (await world.bus.subjectsOf(stream, firstJournals)).length === 0;
    });
    for (const key of KEYS) await world.client.call(counter, key, "increment", { by: 10 });
    const { hostId } = host.placement;
    const stored = await world.bus.readLast(stream, epoch(shardOfKey("both")));
    expect(Epoch.parse(stored?.json())).to.deep.equal({ owner: hostId, firstJournals: [] });
    await host.stop();
    host = await world.host({ name: "newer" });
    expect(await counts()).to.deep.equal([14, 12, 15, 13, 12]);
  });

  it("gives no shard to a living host of the first release, and takes those that it gives back", async () => {
    await using world = await startWorld({ definitions: [counterActor] });
    const jetstream = world.bus.jetstream.jetstream();
    const { lease, epoch } = world.subjects;
    const renewal = JSON.stringify({ leaving: false, server: world.bus.server });
    // The test may end while a renewal is on its way.
    const renew = () => void jetstream.publish(lease("old"), renewal).catch(() => {});
    const renewing = setInterval(renew, 300);
    try {
      await jetstream.publish(lease("old"), renewal);
      for (let shard = 0; shard < SHARDS; shard++) {
        const host = shard < 8 ? "old" : null;
        await jetstream.publish(epoch(shard), JSON.stringify({ host, journals: [] }));
      }
      // Answers for the old host, so that no other host ends the old host's lease.
      world.bus.connection.subscribe("present.old", { callback: (_, msg) => void msg.respond("") });
      const { placement } = await world.host({ name: "new", complete: false });
      await until("it has the free shards", () => placement.openShards === SHARDS - 8);
      for (let shard = 0; shard < 8; shard++) {
        await jetstream.publish(epoch(shard), JSON.stringify({ host: null, journals: [] }));
      }
      await until("it has all", () => placement.openShards === SHARDS);
    } finally {
      clearInterval(renewing);
    }
  });
});

function journalHeader(sequence: number) {
  const built = headers();
  built.set("Trunkline-Journal", String(sequence));
  return built;
}

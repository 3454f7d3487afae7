import { expect } from "chai";
import { SHARDS, shardGivesMax } from "../../../schemas/limits.ts";
import { addressOf, shardOf, stateBucket, stateSubjects } from "../../../schemas/subjects.ts";
import { startWorld, type World } from "../../../scripts/testing/actor-world.ts";
import { counter, counterActor } from "../../../scripts/testing/counter.ts";
import { until } from "../../../scripts/testing/until.ts";
import { Bus } from "../bus/bus.ts";
import { systemClock } from "../lib/clock.ts";
import { GIVE_TURN_MS } from "./give-turns.ts";
import { readShardOwners } from "./shard-owners.ts";

describe("Placement", function () {
  this.timeout(90_000);

  it("start() of several hosts at once: each sees all hosts and every shard has one owner", async () => {
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

  it("stop() leaves nothing that others wait for, even if it could not give a shard back", async () => {
    await using world = await startWorld({ definitions: [counterActor] });
    const gone = await world.host({ name: "gone" });
    // With this clock no lease is ever too old, so this host learns of the other host's end only from an
    // announcement.
    const clock = { ...systemClock, monotonic: () => 0 };
    const left = await world.host({ name: "left", clock });
    await gone.stop();
    const { placement } = left;
    await until("the other has every shard", () => placement.openShards === SHARDS);
    const key = world.subjects.epoch(0);
    const epoch = JSON.stringify({ host: gone.placement.hostId });
    await world.bus.jetstream.jetstream().publish(key, epoch);
    await until("the shard is dropped", () => placement.openShards < SHARDS);
    await until("and taken again", () => placement.openShards === SHARDS);
  });

  it("stop() gives few shards at a time to another host, and all at once to nobody", async () => {
    await using world = await startWorld({ definitions: [counterActor] });
    // Removes the limit of a turn: each turn of the host that stops ends only when its shard is given away.
    const wait: typeof systemClock.wait = (ms, signal) =>
      ms === GIVE_TURN_MS ? new Promise(() => {}) : systemClock.wait(ms, signal);
    const first = await world.host({ name: "a", clock: { ...systemClock, wait } });
    const second = await world.host({ name: "b" });
    await until("both are at rest", () => {
      return first.placement.openShards + second.placement.openShards === SHARDS;
    });
    const { request } = Bus.prototype;
    const few = shardGivesMax(SHARDS);
    let gate = Promise.withResolvers<void>();
    let waiting = 0;
    Bus.prototype.request = async function (this: Bus, subject, payload, ...rest) {
      if (String(payload).startsWith('{"owner":null')) {
        waiting += 1;
        await gate.promise;
      }
      return request.call(this, subject, payload, ...rest);
    };
    try {
      const left = first.stop();
      await until("some shards are ready to be given", () => waiting >= few);
      await until("a renewal passes", renewalOf(world, second.placement.hostId));
      expect(waiting).to.equal(few);
      gate.resolve();
      await left;
      await until("the other has every shard", () => second.placement.openShards === SHARDS);
      [gate, waiting] = [Promise.withResolvers<void>(), 0];
      const ended = second.stop();
      await until("all shards are ready at once", () => waiting === SHARDS);
      gate.resolve();
      await ended;
    } finally {
      gate.resolve();
      Bus.prototype.request = request;
    }
  });

  it("stop() gives its shards away although late news says that it stays", async () => {
    await using world = await startWorld({ definitions: [counterActor] });
    const first = await world.host({ name: "a" });
    const second = await world.host({ name: "b" });
    await until("both are at rest", () => {
      return first.placement.openShards + second.placement.openShards === SHARDS;
    });
    const member = world.subjects.member(first.placement.hostId);
    const stays = await world.bus.readLast(world.subjects.stream, member);
    const { request } = Bus.prototype;
    const gate = Promise.withResolvers<void>();
    Bus.prototype.request = async function (this: Bus, subject, payload, ...rest) {
      if (String(payload).startsWith('{"owner":null')) await gate.promise;
      return request.call(this, subject, payload, ...rest);
    };
    try {
      const left = first.stop();
      await until("others know that it leaves", async () => {
        const last = await world.bus.readLast(world.subjects.stream, member);
        return last?.json<{ leaving: boolean }>().leaving === true;
      });
      await world.bus.jetstream.jetstream().publish(member, stays?.string() ?? "");
      await until("a renewal passes", renewalOf(world, second.placement.hostId));
      gate.resolve();
      await left;
      await until("the other has every shard", () => second.placement.openShards === SHARDS);
    } finally {
      gate.resolve();
      Bus.prototype.request = request;
    }
  });

  it("startAnew() takes the shards of one state stream while another does not answer", async () => {
    await using world = await startWorld({ definitions: [counterActor], buckets: 2 });
    const { placement } = await world.host();
    await world.bus.jetstream.streams.delete(stateSubjects(stateBucket(1)).stream);
    const former = placement.hostId;
    placement.startAnew();
    expect(placement.hostId).to.not.equal(former);
    await until("it has these shards", () => placement.openShards === SHARDS / 2, 60_000);
    const key = Array.from({ length: 100 }, (_, index) => `key ${index}`).find(
      (one) => shardOf(addressOf("counter", one)) % 2 === 0,
    );
    const answer = await world.client.call(counter, key ?? "", "increment", { by: 1 });
    expect(answer).to.deep.equal({ count: 1 });
  });

  it("start() knows all epochs before other hosts hear of it", async () => {
    await using world = await startWorld({ definitions: [counterActor] });
    await world.host({ name: "a" });
    const consumers = async () => {
      const all = await Array.fromAsync(world.bus.jetstream.consumers.list(world.subjects.stream));
      return all.filter(({ name }) => name.startsWith("placement")).length;
    };
    const before = await consumers();
    const { request } = Bus.prototype;
    const seen: number[] = [];
    Bus.prototype.request = async function (this: Bus, subject, payload, ...rest) {
      if (subject.startsWith(world.subjects.lease("b-"))) seen.push(await consumers());
      return request.call(this, subject, payload, ...rest);
    };
    try {
      await world.host({ name: "b" });
      expect(seen[0]).to.equal(before + 1);
    } finally {
      Bus.prototype.request = request;
    }
  });

  it("gives back a shard that only its epoch gives to this host and that another host is to have", async () => {
    await using world = await startWorld({ definitions: [counterActor] });
    const first = await world.host({ name: "a" });
    const { request } = Bus.prototype;
    // A hand-over ends with a write of an epoch without an owner. The first such write of each shard fails.
    const lost = new Set<string>();
    Bus.prototype.request = function (this: Bus, subject, payload, ...rest) {
      if (!String(payload).startsWith('{"owner":null') || lost.has(subject)) {
        return request.call(this, subject, payload, ...rest);
      }
      lost.add(subject);
      return Promise.reject(new Error("lost on its way"));
    };
    try {
      const hosts = [first, await world.host({ name: "b" })];
      await until("both are at rest", () => {
        const open = hosts.reduce((sum, { placement }) => sum + placement.openShards, 0);
        const given = SHARDS - first.placement.openShards;
        // A host that joins knows the epochs of all shards before it gets its first shard.
        return open === SHARDS && given > 0 && lost.size === given;
      });
      const { hosts: owners } = await readShardOwners(world.bus);
      expect(owners.map(({ shards }) => shards.length).sort()).to.deep.equal(
        hosts.map(({ placement }) => placement.openShards).sort(),
      );
    } finally {
      Bus.prototype.request = request;
    }
  });

  it("start() takes the shards of a lease that is stored but never renewed", async () => {
    await using world = await startWorld({ definitions: [counterActor] });
    // A ghost: an expired lease that nats-server has restored without its time to live.
    const jetstream = world.bus.jetstream.jetstream();
    await jetstream.publish(world.subjects.lease("ghost"), JSON.stringify({ leaving: false }));
    for (let shard = 0; shard < SHARDS; shard++) {
      await jetstream.publish(world.subjects.epoch(shard), JSON.stringify({ host: "ghost" }));
    }
    const { placement } = await world.host({ name: "a", complete: false });
    await until("the ghost's shards are taken", () => placement.openShards === SHARDS, 45_000);
    await until("it knows of an owner for each", () => placement.isComplete);
  });
});

/** Returns true once the host has renewed its lease twice since the first call. */
function renewalOf(world: World, host: string): () => Promise<boolean> {
  const seen = new Set<number>();
  return async () => {
    const lease = await world.bus.readLast(world.subjects.stream, world.subjects.lease(host));
    if (lease) seen.add(lease.seq);
    return seen.size > 2;
  };
}

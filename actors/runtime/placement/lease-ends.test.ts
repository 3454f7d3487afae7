import { expect } from "chai";
import pino from "pino";
import { LEASE_TTL_MS, SHARDS } from "../../../schemas/limits.ts";
import { startWorld, type World } from "../../../scripts/testing/actor-world.ts";
import { counterActor } from "../../../scripts/testing/counter.ts";
import { HoldingClock } from "../../../scripts/testing/holding-clock.ts";
import { preferredHost } from "../../../scripts/testing/preferred-host.ts";
import { until } from "../../../scripts/testing/until.ts";
import type { ActorHost } from "../actor-host.ts";
import { writeAtomically } from "../bus/atomic-batch.ts";
import { systemClock } from "../lib/clock.ts";
import { StateStore } from "../state/state-store.ts";
import { LEASE_FORM, LEASE_RENEW_MS } from "./host-lease.ts";
import { LEASE_UNSEEN_LIVES_MAX, LeaseEnds } from "./lease-ends.ts";
import { Members } from "./members.ts";
import { readShardOwners } from "./shard-owners.ts";

const RELEASED_MEMBER = { payload: "", headers: { "KV-Operation": "DEL", "Nats-TTL": "60s" } };
const LEASE = JSON.stringify({ leaving: false, form: LEASE_FORM });
const UNSEEN_MS_MAX = LEASE_UNSEEN_LIVES_MAX * LEASE_TTL_MS;

describe("LeaseEnds", function () {
  this.timeout(60_000);
  let world: World;
  before(async () => {
    world = await startWorld({ definitions: [counterActor] });
  });
  after(() => world[Symbol.asyncDispose]());

  const publish = (subject: string) => world.bus.jetstream.jetstream().publish(subject, LEASE);
  const read = async (subject: string) =>
    (await world.bus.readLast(world.subjects.stream, subject))?.string();

  const open = (hosts: readonly string[]) => {
    const time = { now: 1_000 };
    const members = new Members(SHARDS);
    for (const host of hosts) members.add(host, { leaving: false, form: LEASE_FORM });
    const ends = new LeaseEnds({
      ...{ bus: world.bus, store: new StateStore(world.bus, world.subjects), members },
      clock: { ...systemClock, monotonic: () => time.now },
      logger: pino({ level: "silent" }),
    });
    return { ends, time };
  };

  it("hasEnded() is true of a lease that is not stored, and false of one that is renewed", async () => {
    const { ends, time } = open(["lives"]);
    expect(await ends.hasEnded("never")).to.equal(true);
    for (let renewal = 0; renewal < 3; renewal++) {
      await publish(world.subjects.lease("lives"));
      expect(await ends.hasEnded("lives")).to.equal(false);
      time.now += UNSEEN_MS_MAX;
      expect(await ends.hasEnded("lives")).to.equal(false);
      time.now += 1;
    }
  });

  it("hasEnded() ends a stored lease that nobody renews", async () => {
    const { ends, time } = open(["ghost"]);
    await publish(world.subjects.member("ghost"));
    await publish(world.subjects.lease("ghost"));
    expect(await ends.hasEnded("ghost")).to.equal(false);
    time.now += UNSEEN_MS_MAX + 1;
    expect(await ends.hasEnded("ghost")).to.equal(true);
    expect(await read(world.subjects.lease("ghost"))).to.equal("");
    expect(await read(world.subjects.member("ghost"))).to.equal("");
  });

  it("hasEnded() makes a living host of the first release a member", async () => {
    const { ends } = open([]);
    await publish(world.subjects.lease("old"));
    expect(await ends.hasEnded("old")).to.equal(false);
    expect(await read(world.subjects.member("old"))).to.equal(LEASE);
  });

  it("hasEnded() leaves a member that its host has written itself", async () => {
    const { ends } = open([]);
    await publish(world.subjects.lease("late"));
    const own = JSON.stringify({ leaving: true, form: LEASE_FORM });
    await world.bus.jetstream.jetstream().publish(world.subjects.member("late"), own);
    expect(await ends.hasEnded("late")).to.equal(false);
    expect(await read(world.subjects.member("late"))).to.equal(own);
  });

  it("a living host whose end was announced wrongly announces itself again, and keeps its shards", async () => {
    await using own = await startWorld({ definitions: [counterActor] });
    const { placement } = await own.host({ name: "a" });
    const { hostId } = placement;
    const end = { ...RELEASED_MEMBER, subject: own.subjects.member(hostId) };
    const ended = await writeAtomically(own.bus, [end]);
    await until("it is a member again", async () => {
      const member = await own.bus.readLast(own.subjects.stream, end.subject);
      return (member?.seq ?? 0) > ended && member?.string() !== "";
    });
    expect(placement.hostId).to.equal(hostId);
    expect(placement.openShards).to.equal(SHARDS);
  });

  it("watch() announces the ends of all dead members behind this host, and no other", async () => {
    const dead = Array.from({ length: 40 }, (_, index) => `dead-${index + 10}`);
    const { ends } = open(["a", ...dead, "later"]);
    for (const host of [...dead, "later"]) await publish(world.subjects.member(host));
    await publish(world.subjects.lease("later"));
    const stopped = new AbortController();
    const watching = ends.watch(() => "a", stopped.signal);
    await until("all ends are announced", async () => {
      const texts = await Promise.all(dead.map((host) => read(world.subjects.member(host))));
      return texts.every((text) => text === "");
    });
    expect(await read(world.subjects.member("later"))).to.equal(LEASE);
    stopped.abort();
    await watching;
  });

  it("watch() also announces the end of a member behind a living host of the first release", async () => {
    const members = new Members(SHARDS);
    for (const host of ["ring-a", "ring-b", "ring-c"])
      members.add(host, { leaving: false, form: LEASE_FORM });
    const store = new StateStore(world.bus, world.subjects);
    let reads = 0;
    const read = store.read.bind(store);
    store.read = async (subject) => {
      // Renews the lease of the host of the first release before each read of this lease.
      if (subject === world.subjects.lease("ring-b")) {
        reads += 1;
        const first = JSON.stringify({ leaving: false });
        await world.bus.jetstream.jetstream().publish(subject, first);
      }
      return read(subject);
    };
    const logger = pino({ level: "silent" });
    const parts = { bus: world.bus, store, members, logger, clock: systemClock };
    for (const subject of [world.subjects.member("ring-c"), world.subjects.lease("ring-c")]) {
      await publish(subject);
    }
    const stopped = new AbortController();
    const watching = new LeaseEnds(parts).watch(() => "ring-a", stopped.signal);
    await until("its renewals are known", () => reads > 2);
    await writeAtomically(world.bus, [
      { ...RELEASED_MEMBER, subject: world.subjects.lease("ring-c") },
    ]);
    const member = async () =>
      (await world.bus.readLast(world.subjects.stream, world.subjects.member("ring-c")))?.string();
    await until("the end behind it is announced", async () => (await member()) === "");
    stopped.abort();
    await watching;
  });

  it("hosts hear of joins and ends, and of no renewal", async () => {
    await using own = await startWorld({ definitions: [counterActor] });
    const hosts: ActorHost[] = [];
    for (const name of ["a", "b", "c"]) {
      // A host that loses its lease would be an end and a join.
      hosts.push(await own.host({ name, complete: false, longLease: true }));
    }
    await until("the shards are at rest", () => {
      // All shards may be open also between two steps of a hand-over, so the preferred hosts must have them.
      const ids = hosts.map(({ placement }) => placement.hostId);
      const preferred = Array.from({ length: SHARDS }, (_, shard) => preferredHost(shard, ids));
      return hosts.every(({ placement }) => {
        const own = preferred.filter((id) => id === placement.hostId).length;
        return placement.isComplete && placement.openShards === own;
      });
    });
    const heard = async () => {
      const counts = new Map<string, number>();
      for await (const { name, delivered } of own.bus.jetstream.consumers.list(
        own.subjects.stream,
      )) {
        if (name.startsWith("placement")) counts.set(name, delivered.consumer_seq);
      }
      return counts;
    };
    const renewals = async () => {
      const subject = own.subjects.lease(hosts[0]?.placement.hostId ?? "");
      return (await own.bus.readLast(own.subjects.stream, subject))?.seq ?? 0;
    };
    const [before, heardBefore] = [await renewals(), await heard()];
    await until(
      "each has renewed its lease several times",
      async () => (await renewals()) > before + 12,
    );
    expect(heardBefore.size).to.equal(hosts.length);
    expect(await heard()).to.deep.equal(heardBefore);
    const ended = hosts[2];
    await ended?.stop();
    await until(
      "the others have its shards",
      () =>
        hosts.slice(0, 2).reduce((sum, { placement }) => sum + placement.openShards, 0) === SHARDS,
    );
    const heardAfter = await heard();
    expect(heardAfter.size).to.equal(hosts.length - 1);
    for (const [name, count] of heardAfter) {
      expect(count).to.be.greaterThan(heardBefore.get(name) ?? Number.POSITIVE_INFINITY);
    }
  });

  it("a host that answers and renews no lease loses its shards", async () => {
    await using own = await startWorld({ definitions: [counterActor] });
    const first = await own.host({ name: "a" });
    const clock = new HoldingClock(LEASE_RENEW_MS);
    const still = await own.host({ name: "b", clock, complete: false });
    const { hostId } = still.placement;
    await until("the end of its lease is announced", async () => {
      const member = await own.bus.readLast(own.subjects.stream, own.subjects.member(hostId));
      return member?.string() === "";
    });
    await until("no epoch names it", async () => {
      const { hosts } = await readShardOwners(own.bus);
      return hosts.every(({ id }) => id !== hostId);
    });
    expect(first.placement.openShards).to.be.greaterThan(0);
  });
});

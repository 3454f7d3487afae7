import { expect } from "chai";
import { LEASE_TTL_MS, SHARDS } from "../../../schemas/limits.ts";
import { addressOf, shardOf } from "../../../schemas/subjects.ts";
import { ActorProcess } from "../../../scripts/testing/actor-process.ts";
import { startWorld, type World } from "../../../scripts/testing/actor-world.ts";
import { counter, counterActor } from "../../../scripts/testing/counter.ts";
import { startCluster } from "../../../scripts/testing/nats-server.ts";
import { preferredHost } from "../../../scripts/testing/preferred-host.ts";
import { probe, probeActor } from "../../../scripts/testing/probe.ts";
import { TcpProxy } from "../../../scripts/testing/tcp-proxy.ts";
import { until } from "../../../scripts/testing/until.ts";
import type { ActorHost } from "../actor-host.ts";
import { BusLiveUpdates } from "../bus/live.ts";
import { systemClock } from "../lib/clock.ts";

const definitions = [counterActor, probeActor];

describe("several hosts", function () {
  this.timeout(240_000);

  it("share the shards by rendezvous hashing; joins and leaves move only what they must, and no call fails", async () => {
    await using world = await startWorld({ definitions });
    const first = await world.host({ name: "first" });
    const hosts = [first];
    let calling = true;
    let called = 0;
    const load = Promise.all(
      Array.from({ length: 8 }, async (_, lane) => {
        while (calling) {
          const key = `k${lane}.${called % 40}`;
          await world.client.call(counter, key, "increment", { by: 1 }, { deadlineMs: 60_000 });
          called += 1;
        }
      }),
    );
    const owners = () => ownersOf(world);
    let before = await owners();
    for (const name of ["second", "third"]) {
      hosts.push(await world.host({ name }));
      await settled(world, hosts);
      const after = await owners();
      const joined = hosts.at(-1)?.placement.hostId;
      for (let shard = 0; shard < SHARDS; shard++) {
        if (after[shard] !== before[shard]) expect(after[shard]).to.equal(joined);
      }
      before = after;
    }
    await first.stop();
    const staying = hosts.slice(1);
    await settled(world, staying);
    const left = await owners();
    const ids = staying.map(({ placement }) => placement.hostId);
    for (let shard = 0; shard < SHARDS; shard++) {
      expect(left[shard]).to.equal(preferredHost(shard, ids));
      if (ids.includes(before[shard] ?? "")) expect(left[shard]).to.equal(before[shard]);
    }
    calling = false;
    await load;
    let sum = 0;
    for (let lane = 0; lane < 8; lane++) {
      for (let number = 0; number < 40; number++) {
        sum += (await world.client.call(counter, `k${lane}.${number}`, "get", {})).count;
      }
    }
    expect(sum).to.equal(called);
  });

  it("keep state in several buckets, each shard in its own", async () => {
    await using world = await startWorld({ definitions, buckets: 3 });
    let host = await world.host();
    const keys = Array.from({ length: 30 }, (_, index) => `b${index}`);
    await Promise.all(
      keys.map((key) => world.client.call(counter, key, "give", { to: "sum", by: -1 })),
    );
    await until("all of it arrived", async () => {
      const { count } = await world.client.call(counter, "sum", "get", {});
      return count === -30;
    });
    await host.stop();
    host = await world.host();
    for (const key of keys) {
      expect((await world.client.call(counter, key, "get", {})).count).to.equal(1);
      const bucket = shardOf(addressOf("counter", key)) % 3;
      expect(
        await world.count(`KV_state-${bucket}`, `$KV.state-${bucket}.counter.${key}`),
      ).to.equal(1);
    }
  });

  it("answer every caller in their process while they alone have lost the bus", async () => {
    await using world = await startWorld({ definitions });
    const proxy = await TcpProxy.start(world.nats?.port ?? 0);
    const listeners = new Map();
    const url = world.nats?.urlAt(proxy.port) ?? "";
    const lost = await world.host({ name: "lost", bus: { url, listeners } });
    // With this clock no try times out, so no call is sent again because its answer is late.
    const clock = { ...systemClock, monotonic: () => 0 };
    const client = await world.newClient({ listeners, clock });
    const keys = Array.from({ length: 20 }, (_, index) => `n${index}`);
    const called = async (message: "increment" | "get") => {
      const replies = await Promise.all(
        keys.map((key) => client.call(counter, key, message, { by: 1 })),
      );
      return replies.map(({ count }) => count);
    };
    await called("increment");
    proxy.cut();
    const asked = [called("increment"), called("get")];
    proxy.open();
    await Promise.all(asked);
    const other = await world.host({ name: "other" });
    await settled(world, [lost, other]);
    proxy.cut();
    await until("the other has all", () => other.placement.openShards === SHARDS, 60_000);
    expect(await called("get")).to.deep.equal(keys.map(() => 2));
    await called("increment");
    proxy.open();
    await settled(world, [lost, other]);
    expect(await called("get")).to.deep.equal(keys.map(() => 3));
    await lost.stop();
    await proxy.stop();
  });

  it("take over at once from a host whose connection is gone, which no longer trusts its lease", async () => {
    await using world = await startWorld({ definitions });
    const proxy = await TcpProxy.start(world.nats?.port ?? 0);
    const url = world.nats?.urlAt(proxy.port) ?? "";
    const stays = await world.host({ name: "stays" });
    // With this clock the host's own lease never expires.
    const clock = { ...systemClock, now: () => 1e12, monotonic: () => 0 };
    const lost = await world.host({ name: "lost", clock, bus: { url } });
    await settled(world, [lost, stays]);
    const lease = world.subjects.lease(lost.placement.hostId);
    expect(lost.placement.holdsLease()).to.equal(true);
    proxy.cut();
    await until("it knows", () => !lost.placement.holdsLease());
    // Writes the lease without an expiry, repeatedly, because hosts treat a lease that stays unchanged as a ghost. So
    // only the lost connection can end the lease.
    const value = JSON.stringify({ leaving: false, server: world.bus.server });
    let writtenAt = 0;
    await until("it is ended", async () => {
      if (performance.now() - writtenAt > LEASE_TTL_MS) {
        await world.bus.jetstream.jetstream().publish(lease, value);
        writtenAt = performance.now();
      }
      const last = await world.bus.readLast(world.subjects.stream, lease);
      return last?.header.get("KV-Operation") === "DEL";
    });
    await until("the other has all", () => stays.placement.openShards === SHARDS);
    proxy.open();
    await settled(world, [lost, stays]);
    expect(lost.placement.holdsLease()).to.equal(true);
    await lost.stop();
    await proxy.stop();
  });

  it("show no update of a host that stood still while another took its shards", async () => {
    await using world = await startWorld({ definitions });
    const late = new ActorProcess({ url: world.url, name: "late" });
    await late.ready;
    const leaving = new AbortController();
    const live = new BusLiveUpdates(world.bus);
    const updates = await live.subscribe(probe, "watched", leaving.signal);
    const patient = { deadlineMs: 60_000 };
    const show = (text: string, note: boolean) =>
      world.client.call(probe, "watched", "show", { text, note }, patient);
    await show("first", true);
    late.pause();
    const shown = show("early", false);
    // After this flush, the call is in the socket buffer of the host `late`, which is suspended and does not read it.
    await world.bus.connection.flush();
    const next = await world.host({ name: "next" });
    await shown;
    await show("newer", true);
    late.resume();
    await until("it has shards again", () => next.placement.openShards < SHARDS);
    await show("last", true);
    const seen: string[] = [];
    for await (const update of updates) {
      seen.push("value" in update ? update.value.text : "");
      if (seen.includes("last")) break;
    }
    expect(seen.filter((text) => text !== "")).to.deep.equal(["first", "early", "newer", "last"]);
    leaving.abort();
    await late.stop();
  });

  it("do all of that on three servers with three replicas, also while one server is away", async () => {
    await using cluster = await startCluster(3);
    await using world = await startWorld({
      definitions,
      replicas: 3,
      url: cluster.urls.join(","),
    });
    const one = await world.host({ name: "one" });
    const two = await world.host({ name: "two" });
    await settled(world, [one, two]);
    const keys = Array.from({ length: 40 }, (_, index) => `r${index}`);
    // The servers take up to 9 s to elect a new leader of the state stream, and twice as long if two candidates stand
    // at the same time.
    const patient = { deadlineMs: 60_000 };
    const increments = () =>
      Promise.all(
        keys.flatMap((key) =>
          [1, 2, 3].map(() => world.client.call(counter, key, "increment", { by: 1 }, patient)),
        ),
      );
    await increments();
    await Promise.all(
      keys.map((key) =>
        world.client.call(probe, key, "fillRows", { from: 0, count: 20, characters: 50 }),
      ),
    );
    await Promise.all(
      keys.map((key) => world.client.call(counter, key, "give", { to: "sum", by: 1 })),
    );
    await world.client.call(probe, "timer", "remind", { early: Date.now() + 300 });
    await until("the mail is there", async () => {
      const { count } = await world.client.call(counter, "sum", "get", {});
      return count === keys.length;
    });
    await until("the reminder came", async () => {
      const { log } = await world.client.call(probe, "timer", "get", {});
      return log.length === 1;
    });
    await cluster.servers[2]?.kill();
    await increments();
    await two.stop();
    await settled(world, [one]);
    for (const key of keys) {
      expect((await world.client.call(counter, key, "get", {})).count).to.equal(5);
      const { rows } = await world.client.call(probe, key, "setRow", { row: "x", value: "y" });
      expect(rows).to.equal(20);
    }
    await cluster.servers[2]?.start();
  });
});

/** Resolves when every shard is open at the host that should have it. */
async function settled(world: World, hosts: readonly ActorHost[]): Promise<void> {
  await until(
    "the shards are where they belong",
    async () => {
      // A host whose lease ended while the bus had no leader continues under another name.
      const ids = hosts.map(({ placement }) => placement.hostId);
      // After a server was killed, nobody can answer until the other servers have elected a leader.
      const owners = await ownersOf(world).catch(() => undefined);
      if (!owners) return false;
      if (owners.some((owner, shard) => owner !== preferredHost(shard, ids))) return false;
      return hosts.reduce((sum, { placement }) => sum + placement.openShards, 0) === SHARDS;
    },
    60_000,
  );
}

const ownersOf = (world: World) =>
  Promise.all(
    Array.from({ length: SHARDS }, async (_, shard) => {
      const epoch = await world.bus.readLast(world.subjects.stream, world.subjects.epoch(shard));
      return epoch?.json<{ owner: string | null }>().owner;
    }),
  );

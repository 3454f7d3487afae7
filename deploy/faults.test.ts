/** Breaks everything the runtime stands on while 200 clients work: every effect is there once, and no answer is stale. */
import { expect } from "chai";
import { systemClock as clock } from "../actors/runtime/clock.ts";
import { LEASE_TTL_MS } from "../schemas/limits.ts";
import { FaultScene } from "../scripts/testing/fault-scene.ts";
import { SeededRandom } from "../scripts/testing/seeded-random.ts";

/** A dead host's actors answer again after this at most. */
const TAKEOVER_MS_MAX = 5_000;
/** A host that leaves keeps no call longer than 1 s; the rest is for a machine that runs other tests beside. */
const LEAVE_MS_MAX = 2_500;

const FAILURES_SHOWN = 5;

const seed = Number(process.env.TRUNKLINE_TEST_SEED ?? SeededRandom.newSeed());

describe("actors under faults", function () {
  this.timeout(60_000);
  before(() => console.log(`    TRUNKLINE_TEST_SEED=${seed} repeats the choices of this run`));

  it("an owner is killed in the middle of its commits", async () => {
    await using scene = await FaultScene.start({ seed, hosts: 3 });
    for (let round = 0; round < 2; round++) {
      await clock.wait(scene.random.integer(300, 1_000));
      await scene.takeHost().kill();
      const ms = await scene.load.askAll();
      console.log(`      its actors answered after ${ms} ms`);
      expect(ms).to.be.below(TAKEOVER_MS_MAX);
      await scene.addHost().ready;
    }
    expect(await scene.findProblems()).to.deep.equal([]);
    expect(scene.load.failures.slice(0, FAILURES_SHOWN)).to.deep.equal([]);
  });

  it("an owner stands still for longer than its lease and wakes", async () => {
    await using scene = await FaultScene.start({ seed, hosts: 2 });
    await clock.wait(scene.random.integer(300, 1_000));
    const host = scene.random.pick(scene.hosts);
    host.pause();
    const ms = await scene.load.askAll();
    console.log(`      its actors answered after ${ms} ms`);
    expect(ms).to.be.below(TAKEOVER_MS_MAX);
    await clock.wait(scene.random.integer(LEASE_TTL_MS / 2, LEASE_TTL_MS));
    host.resume();
    await clock.wait(2_000);
    expect(await scene.findProblems()).to.deep.equal([]);
    expect(scene.load.failures.slice(0, FAILURES_SHOWN)).to.deep.equal([]);
  });

  it("an owner stands still for less than its lease and wakes", async () => {
    await using scene = await FaultScene.start({ seed, hosts: 2 });
    for (let round = 0; round < 4; round++) {
      await clock.wait(scene.random.integer(100, 600));
      const host = scene.random.pick(scene.hosts);
      host.pause();
      await clock.wait(scene.random.integer(200, LEASE_TTL_MS));
      host.resume();
    }
    expect(await scene.findProblems()).to.deep.equal([]);
    expect(scene.load.failures.slice(0, FAILURES_SHOWN)).to.deep.equal([]);
  });

  it("nats-server is killed and started again", async () => {
    await using scene = await FaultScene.start({ seed, hosts: 2 });
    // Once within every lease, once past all of them.
    for (const downMs of [scene.random.integer(0, 500), LEASE_TTL_MS + 500]) {
      await clock.wait(scene.random.integer(300, 1_000));
      await scene.nats.kill();
      await clock.wait(downMs);
      await scene.nats.start();
      const ms = await scene.load.askAll();
      console.log(`      down for ${downMs} ms, all answered ${ms} ms after the start`);
      expect(ms).to.be.below(TAKEOVER_MS_MAX);
    }
    // Hosts see each other come and go as before.
    await scene.takeHost().kill();
    const ms = await scene.load.askAll();
    console.log(`      a host killed then: answered after ${ms} ms`);
    expect(ms).to.be.below(TAKEOVER_MS_MAX);
    expect(await scene.findProblems()).to.deep.equal([]);
    expect(scene.load.failures.slice(0, FAILURES_SHOWN)).to.deep.equal([]);
  });

  it("connections are cut, and stalled until others have taken over", async () => {
    await using scene = await FaultScene.start({ seed, hosts: 1 });
    const hostProxy = await scene.addProxiedHost();
    for (const proxy of [hostProxy, scene.clientProxy]) {
      await clock.wait(scene.random.integer(300, 800));
      proxy.cut();
      await clock.wait(scene.random.integer(0, 500));
      proxy.open();
    }
    for (const proxy of [hostProxy, scene.clientProxy]) {
      await clock.wait(scene.random.integer(300, 800));
      proxy.stall();
      await clock.wait(scene.random.integer(500, LEASE_TTL_MS + 2_000));
      proxy.open();
    }
    expect(await scene.findProblems()).to.deep.equal([]);
    expect(scene.load.failures.slice(0, FAILURES_SHOWN)).to.deep.equal([]);
  });

  it("hosts race for shards as they come and go", async () => {
    await using scene = await FaultScene.start({ seed, hosts: 1, buckets: 2 });
    for (let round = 0; round < 5; round++) {
      const joined = Array.from({ length: scene.random.integer(1, 2) }, () => scene.addHost());
      await clock.wait(scene.random.integer(200, 1_200));
      if (scene.random.chance(0.5)) await Promise.all(joined.map((host) => host.ready));
      while (scene.hosts.length > 2) await scene.takeHost().stop();
    }
    expect(await scene.findProblems()).to.deep.equal([]);
    expect(scene.load.failures.slice(0, FAILURES_SHOWN)).to.deep.equal([]);
  });

  it("a host leaves: no call fails, and all are answered within a second", async () => {
    await using scene = await FaultScene.start({ seed, hosts: 3 });
    await clock.wait(500);
    const since = clock.monotonic();
    for (let round = 0; round < 2; round++) {
      const host = scene.takeHost();
      const startedAt = clock.monotonic();
      const [ms] = await Promise.all([scene.load.askAll(), host.stop()]);
      const leftMs = Math.round(clock.monotonic() - startedAt);
      console.log(`      all answered after ${ms} ms, it was gone after ${leftMs} ms`);
    }
    const slowest = scene.load.slowestSince(since);
    console.log(`      the slowest call took ${slowest} ms`);
    expect(slowest).to.be.below(LEAVE_MS_MAX);
    expect(await scene.findProblems()).to.deep.equal([]);
    expect(scene.load.failures.slice(0, FAILURES_SHOWN)).to.deep.equal([]);
  });
});

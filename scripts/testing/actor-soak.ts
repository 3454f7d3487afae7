/**
 * Injects random faults for minutes while clients call actors, then checks the invariants: `node_modules/.bin/node
 * scripts/testing/actor-soak.ts --minutes N --seed S`.
 */
import { parseArgs } from "node:util";
import { systemClock as clock } from "../../actors/runtime/lib/clock.ts";
import { LEASE_TTL_MS } from "../../schemas/limits.ts";
import { FaultScene } from "./fault-scene.ts";
import { orRefuse, readRunOptions } from "./run-options.ts";
import { SeededRandom } from "./seeded-random.ts";

/**
 * Number of faults before the load is checked and a new scene starts. The cost of the check grows with the number of
 * calls.
 */
const FAULTS_PER_SCENE = 12;
const QUIET_MS_MAX = 2_000;
const HOSTS_MIN = 2;
const HOSTS_MAX = 4;

const options = {
  minutes: { type: "string", default: "5" },
  seed: { type: "string" },
} as const;
const { values } = orRefuse(() => parseArgs({ options }));
const { minutes, seed } = readRunOptions(values);
const endAt = clock.monotonic() + minutes * 60_000;
const random = new SeededRandom(seed);
console.log(`--seed ${seed} repeats the choices of this run`);

while (clock.monotonic() < endAt && process.exitCode === undefined) {
  const sceneSeed = random.integer(0, 2 ** 32 - 1);
  const buckets = random.integer(1, 2);
  await using scene = await FaultScene.start({ seed: sceneSeed, hosts: 2, buckets });
  const proxy = await scene.addProxiedHost();
  const faults: Record<string, () => Promise<void>> = {
    kill: () => scene.takeHost().kill(),
    leave: () => scene.takeHost().stop(),
    join: async () => void scene.addHost(),
    pause: async () => {
      const host = scene.random.pick(scene.hosts);
      host.pause();
      await clock.wait(scene.random.integer(0, 2 * LEASE_TTL_MS));
      host.resume();
    },
    restart: async () => {
      // Waits until every host is ready, because a starting host that cannot reach the bus exits.
      await Promise.all(scene.hosts.map(({ ready }) => ready));
      await scene.nats.kill();
      await clock.wait(scene.random.integer(0, 1.5 * LEASE_TTL_MS));
      await scene.nats.start();
    },
    cut: async () => {
      const cut = scene.random.pick([proxy, scene.clientProxy]);
      cut.cut();
      await clock.wait(scene.random.integer(0, LEASE_TTL_MS));
      cut.open();
    },
    stall: async () => {
      const stalled = scene.random.pick([proxy, scene.clientProxy]);
      stalled.stall();
      await clock.wait(scene.random.integer(0, 2 * LEASE_TTL_MS));
      stalled.open();
    },
  };
  for (let count = 0; count < FAULTS_PER_SCENE && clock.monotonic() < endAt; count++) {
    await clock.wait(scene.random.integer(0, QUIET_MS_MAX));
    while (scene.hosts.length < HOSTS_MIN) scene.addHost();
    while (scene.hosts.length > HOSTS_MAX) await scene.takeHost().stop();
    const name = scene.random.pick(Object.keys(faults));
    console.log(`${new Date().toISOString()} ${name}`);
    await faults[name]?.();
  }
  const problems = [...(await scene.findProblems()), ...scene.load.failures];
  const calls = scene.load.history.length;
  console.log(`${calls} calls, ${problems.length === 0 ? "all is well" : problems.join("\n")}`);
  if (problems.length > 0) process.exitCode = 1;
}

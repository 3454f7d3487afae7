/**
 * Kills, stops and rolls the processes that agents run on, and counts the turns of each event. There must be exactly
 * one, whatever process is lost.
 */
import { expect } from "chai";
import { systemClock as clock } from "../../actors/runtime/lib/clock.ts";
import { LEASE_TTL_MS } from "../../schemas/limits.ts";
import { AppScene } from "../../scripts/testing/app-scene.ts";
import { SeededRandom } from "../../scripts/testing/seeded-random.ts";
import { TurnLoad } from "../../scripts/testing/turn-load.ts";

const SERVERS = 3;
const FAULTS_SHOWN = 10;
/** Number of faults in one run. Set the variable for a longer run by hand. */
const FAULTS_MAX = Number(process.env.TRUNKLINE_CHAOS_FAULTS ?? 3);
/** Number of events that are answered after each fault. */
const EVENTS_BETWEEN = 40;
const STOP_MS_MAX = 2 * LEASE_TTL_MS;

const seed = Number(process.env.TRUNKLINE_TEST_SEED ?? SeededRandom.newSeed());

describe("turns of agents under faults of a cluster", function () {
  this.timeout(1_800_000);
  before(() => console.log(`    TRUNKLINE_TEST_SEED=${seed} repeats the choices of this run`));

  it("each event has one turn and is sent on by one, whatever is lost", async () => {
    const random = new SeededRandom(seed);
    await using scene = await AppScene.start({ servers: SERVERS });
    await using load = await TurnLoad.start(scene, random.fork());
    await load.more(EVENTS_BETWEEN);
    for (let number = 0; number < FAULTS_MAX; number++) {
      const name = random.pick(Object.keys(FAULTS) as (keyof typeof FAULTS)[]);
      const startedAt = clock.monotonic();
      await FAULTS[name](scene, random);
      await load.more(EVENTS_BETWEEN);
      console.log(`      ${name}, and more after ${Math.round(clock.monotonic() - startedAt)} ms`);
    }
    await scene.settled();
    await load.compare();
    const { sent, answered, reported } = load;
    console.log(`      ${sent} events, ${answered} answered, ${reported} sent on`);
    expect(load.faults.slice(0, FAULTS_SHOWN)).to.deep.equal([]);
  });
});

const FAULTS = {
  async "a process of the app is killed"(scene: AppScene, random: SeededRandom) {
    const pids = await scene.appProcesses();
    if (pids.length > 0) process.kill(random.pick(pids), "SIGKILL");
  },
  async "a host is killed"(scene: AppScene, random: SeededRandom) {
    await scene.settled();
    await scene.killHost(random.pick(scene.hosts));
    scene.later(scene.addHost());
  },
  async "a host is rolled"(scene: AppScene, random: SeededRandom) {
    await scene.settled();
    await scene.rollHost(random.pick(scene.hosts));
  },
  async "a host is stopped"(scene: AppScene, random: SeededRandom) {
    const host = random.pick(scene.hosts);
    host.signal("SIGSTOP");
    await clock.wait(random.integer(0, STOP_MS_MAX));
    host.signal("SIGCONT");
  },
  async "a gateway is killed"(scene: AppScene, random: SeededRandom) {
    await scene.settled();
    const gateway = random.pick(scene.gateways);
    await scene.killGateway(gateway);
    scene.later(scene.restartGateway(gateway));
  },
  async "a server is killed"(scene: AppScene, random: SeededRandom) {
    await scene.settled();
    const server = random.pick(scene.servers);
    await server.kill();
    await clock.wait(random.integer(0, STOP_MS_MAX));
    await server.start();
  },
  async "a server is rolled"(scene: AppScene, random: SeededRandom) {
    await scene.settled();
    await random.pick(scene.servers).restart();
  },
  async "a server is stopped"(scene: AppScene, random: SeededRandom) {
    const { pid } = random.pick(scene.servers);
    process.kill(pid, "SIGSTOP");
    await clock.wait(random.integer(0, STOP_MS_MAX));
    process.kill(pid, "SIGCONT");
  },
};

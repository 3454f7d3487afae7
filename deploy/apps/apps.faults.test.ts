/**
 * Kills the processes that apps run on while many webhooks arrive. Afterwards, each event must be stored exactly one
 * time, and sockets must show the stored state.
 */
import { expect } from "chai";
import { systemClock as clock } from "../../actors/runtime/lib/clock.ts";
import { AppScene } from "../../scripts/testing/app-scene.ts";
import {
  AppStorm,
  STORM_APP,
  STORM_CODE,
  STORM_CONFIG,
  STORM_SECRET,
} from "../../scripts/testing/app-storm.ts";
import { SeededRandom } from "../../scripts/testing/seeded-random.ts";
import { until } from "../../scripts/testing/until.ts";

const FAULTS_SHOWN = 10;
/** Events between two faults. */
const EVENTS_BETWEEN = 60;
const BUS_AWAY_MS_MAX = 1_500;
/** Time limit for the start of an app's process on a busy machine. */
const START_MS_MAX = 60_000;

const seed = Number(process.env.TRUNKLINE_TEST_SEED ?? SeededRandom.newSeed());

describe("apps under faults", function () {
  // On a busy machine, the start alone takes a minute.
  this.timeout(1_800_000);
  before(() => console.log(`    TRUNKLINE_TEST_SEED=${seed} repeats the choices of this run`));

  it("an app's process, a host, a gateway and the bus are killed in a storm of webhooks", async () => {
    const random = new SeededRandom(seed);
    let at = clock.monotonic();
    const note = (what: string) => {
      const since = at;
      at = clock.monotonic();
      console.log(`      ${what} after ${Math.round(at - since)} ms`);
    };
    const scene = await AppScene.start();
    const storm = new AppStorm(scene, random.fork());
    try {
      note("it runs");
      await deploy(scene);
      await storm.start();
      note("it is deployed and watched");
      for (const what of shuffled(KILLED, random)) {
        await storm.more(EVENTS_BETWEEN);
        await clock.wait(random.integer(0, 400));
        note("more events were taken");
        await FAULTS[what](scene, storm, random);
        await storm.more(EVENTS_BETWEEN);
        note(`a ${what} was killed, and more were taken`);
      }
      await storm.stop();
      await scene.settled();
      note("the storm is over");
      await storm.compare();
      note("all was compared");
      const { taken, again, repeats, waited } = storm;
      console.log(`      ${taken} events, ${repeats} sent twice, ${waited} waited at the end`);
      console.log(`      ${again} tries came to nothing`);
      expect(storm.faults.slice(0, FAULTS_SHOWN)).to.deep.equal([]);
    } finally {
      storm.close();
      await scene[Symbol.asyncDispose]();
    }
    await until("no process is left", () => scene.left.length === 0);
  });
});

const FAULTS = {
  async process(scene: AppScene, _storm: AppStorm, random: SeededRandom) {
    // After a host was lost, the next host starts the app only when its code is requested.
    const running = await until(
      "the app's code runs",
      async () => {
        const pids = await scene.appProcesses();
        return pids.length > 0 && pids;
      },
      START_MS_MAX,
    );
    process.kill(random.pick(running), "SIGKILL");
  },
  async host(scene: AppScene, _storm: AppStorm, random: SeededRandom) {
    await scene.killHost(random.pick(scene.hosts));
    scene.later(scene.addHost());
  },
  async gateway(scene: AppScene, storm: AppStorm, random: SeededRandom) {
    const gateway = random.pick(scene.gateways);
    const agents = storm.lose(gateway);
    await scene.killGateway(gateway);
    // The clients of this gateway reconnect to other gateways.
    await Promise.all(agents.map((agent) => storm.watch(agent)));
    scene.later(scene.restartGateway(gateway));
  },
  async bus(scene: AppScene, _storm: AppStorm, random: SeededRandom) {
    // A process that starts without a bus exits, and its supervisor starts it again.
    await scene.settled();
    const [server] = scene.servers;
    await server?.kill();
    await clock.wait(random.integer(0, BUS_AWAY_MS_MAX));
    await server?.start();
  },
};

/** Kills a process twice, because processes are the part most likely to crash in use. */
const KILLED = ["process", "host", "gateway", "bus", "process"] as const;

async function deploy({ platform }: AppScene): Promise<void> {
  // A secret can be set before its app exists.
  const put = await platform.rest("PUT", `/apps/${STORM_APP}/secrets/HOOK`, {
    value: STORM_SECRET,
  });
  expect(put.status).to.equal(200);
  const { body } = await platform.deploy(STORM_APP, STORM_CODE, STORM_CONFIG);
  expect(body.errors).to.deep.equal([]);
}

function shuffled<T>(items: readonly T[], random: SeededRandom): T[] {
  return items
    .map((item) => ({ item, at: random.next() }))
    .toSorted((one, other) => one.at - other.at)
    .map(({ item }) => item);
}

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { Bus } from "../../actors/runtime/bus/bus.ts";
import { FIRST_LAYOUT } from "../../schemas/data-layout.ts";
import { ActorProcess } from "../testing/actor-process.ts";
import { findProblems } from "../testing/fault-check.ts";
import { type Add, COUNTERS, FaultLoad } from "../testing/fault-load.ts";
import { FaultScene } from "../testing/fault-scene.ts";
import { startNats } from "../testing/nats-server.ts";
import { SeededRandom } from "../testing/seeded-random.ts";
import { until } from "../testing/until.ts";
import { BackupFolder } from "./backup/backup-folder.ts";
import { restoreBackup } from "./backup/restore-backup.ts";
import { type BackupResult, takeBackup } from "./backup/take-backup.ts";

/** Number of calls that the load makes before each backup. */
const CALLS = 1_000;
/** Number of clients of the load. They leave the backup processor time on a machine three times slower than usual. */
const CLIENTS = 24;
/** Tolerance between the wall clock and the monotonic clock, because they are read one after the other. */
const CLOCKS_MS = 5;

describe("backup under load", function () {
  this.timeout(900_000);
  let path: string;
  beforeEach(async () => {
    path = await mkdtemp(join(tmpdir(), "trunkline-backup-"));
  });
  afterEach(() => rm(path, { recursive: true, maxRetries: 10 }));

  for (const buckets of [1, 2]) {
    it(`a restored bus continues exactly where the bus was (streams of state and of mail: ${buckets})`, async () => {
      const seed = Number(process.env.TRUNKLINE_TEST_SEED ?? SeededRandom.newSeed());
      console.log(`      TRUNKLINE_TEST_SEED=${seed}`);
      await using scene = await FaultScene.start({
        ...{ seed, hosts: 2, buckets, clients: CLIENTS },
        mailStreams: buckets,
      });
      const folder = new BackupFolder(path);
      using _ = await folder.prepare();
      // The second backup in the same folder adds to the first one, and no longer lists messages that were removed
      // meanwhile.
      for (let round = 1; round <= 3; round++) {
        const goal = scene.load.history.length + CALLS;
        await until("calls", () => scene.load.history.length >= goal, 60_000);
        const entries: Map<string, number>[] = [];
        const atMoment = () => void entries.push(new Map(scene.load.entries));
        const result = await takeBackup(scene.bus, folder, { atMoment });
        const sentBefore = entries.at(-1) ?? new Map();
        const sentDuring = sum(scene.load.entries) - sum(sentBefore);
        const { streams } = result.backup;
        const extra = streams.reduce((all, { messages, counted }) => all + messages - counted, 0);
        console.log(
          `      paused for ${Math.round(result.pausedMs)} ms, ${result.holds} pauses, ${extra} messages too many`,
        );
        const history = knownAt(scene.load.history, result);
        // Pauses the load on the first bus during this check. The restored bus is a separate server, so the pause
        // does not change the result.
        const resume = scene.load.pause();
        const problems = await problemsOf({ path, history, sentBefore, sentDuring, buckets });
        resume();
        expect(problems).to.deep.equal([]);
      }
      expect(await scene.findProblems()).to.deep.equal([]);
      expect(scene.load.failures).to.deep.equal([]);
    });
  }
});

/** Restores the newest backup and describes every fault of the restored data. */
async function problemsOf(parts: {
  path: string;
  history: Add[];
  sentBefore: Map<string, number>;
  sentDuring: number;
  buckets: number;
}): Promise<string[]> {
  const { path, history, sentBefore, sentDuring, buckets } = parts;
  await using nats = await startNats();
  const bus = await Bus.connect({ url: nats.url, name: "restored" });
  const folder = new BackupFolder(path);
  const backup = await folder.read((await folder.moments()).at(-1) ?? "");
  await folder.verify(backup);
  await restoreBackup({ bus, folder, replicas: 1, restored: () => {} }, backup);
  const host = new ActorProcess({ url: nats.url, name: "restored", buckets, mailStreams: buckets });
  await host.ready;
  bus.layout = { ...FIRST_LAYOUT, stateStreams: buckets, mailStreams: buckets };
  const random = new SeededRandom(1);
  const load = await FaultLoad.connect({ urls: [nats.url], random, layout: bus.layout });
  try {
    // Not `push(...history)`: there may be more calls than a function takes arguments.
    for (const call of history) load.history.push(call);
    for (const [id, sent] of sentBefore) load.entries.set(id, sent);
    for (let sent = 0; sent < sentDuring; sent++) load.failures.push("sent during the backup");
    expect(COUNTERS.length).to.be.greaterThan(0);
    return await findProblems(load, bus, buckets);
  } finally {
    await load.close();
    await bus.close();
    await host.kill();
  }
}

/**
 * Returns the calls that a backup may contain. Calls answered before the moment of the backup have their answers.
 * Calls started before the end of the backup's pause have an unknown outcome. Later calls are absent.
 */
function knownAt(history: readonly Add[], { backup, pausedMs }: BackupResult): Add[] {
  // The process may stand still between the two readings, which makes their difference smaller. So the largest counts.
  const readings = Array.from({ length: 9 }, () => Date.now() - performance.now());
  const moment = Date.parse(backup.moment) - Math.max(...readings);
  const end = moment + pausedMs + CLOCKS_MS;
  return history
    .filter(({ startedAt }) => startedAt <= end)
    .map(({ ended, ...call }) =>
      ended && ended.at < moment - CLOCKS_MS ? { ...call, ended } : call,
    );
}

const sum = (counts: Map<string, number>) =>
  Array.from(counts.values()).reduce((all, count) => all + count, 0);

/**
 * Runs a whole platform under a mixed load for minutes, while its time of day jumps by days. Reports growth of
 * memory, descriptors, files, streams and waiting work, and data that can be read past its time. Its removal is not
 * checked: nats-server, whose time of day does not jump, wakes the actors that remove it.
 */
import { type Dirent, readdirSync } from "node:fs";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newSecretKey } from "../../actors/apps/lib/app-secrets/secret-box.ts";
import { Bus } from "../../actors/runtime/bus/bus.ts";
import { systemClock as clock } from "../../actors/runtime/lib/clock.ts";
import { CRAWL_KEPT_MS } from "../../schemas/crawl/limits.ts";
import { FakeTime } from "./fake-time.ts";
import { findLeftWork } from "./left-work.ts";
import { residentBytes } from "./memory-watch.ts";
import { startNats, type TestNatsServer } from "./nats-server.ts";
import { childrenOf, openFilesOf } from "./process-children.ts";
import { RoleProcess } from "./role-process.ts";
import { SoakWork } from "./soak-work.ts";

const DAY_SECONDS = 86_400;
/**
 * The offsets of the time of day, one jump after another: one to four days ahead, back to the true time, one day
 * behind, and back.
 */
const JUMPS = [DAY_SECONDS, 4 * DAY_SECONDS, 3 * DAY_SECONDS, 0, -DAY_SECONDS, 0];
/** The jump after which no crawl may be kept any more. */
const PAST_CRAWLS = (CRAWL_KEPT_MS / 86_400_000 + 1) * DAY_SECONDS;
const SAMPLES = 60;
/** V8 lets a heap grow before it collects garbage, so less growth than this is not a leak. */
const MEMORY_BYTES_SLACK = 64 * 2 ** 20;
const MEMORY_RATIO_MAX = 1.3;
/** Allowed growth in descriptors: pooled connections, and files that a store opens for a while. */
const DESCRIPTORS_SLACK = 40;
const FILES_SLACK = 60;
/**
 * The streams that hold only work in progress, or a bounded number of the newest messages. The others grow with the
 * data that the load stores: crawls, packs, and the state of actors.
 */
const BOUNDED_STREAMS = /^(MAIL|TASKS|DEAD|JOURNAL_|AGENTS|APP_LOGS|TRACES|CACHE|OBJ_render-jobs)/;
/** Allowed growth of a bounded stream: a journal has up to 32 MB, and TRACES 24 MiB. */
const STREAM_BYTES_SLACK = 32 * 2 ** 20;
/**
 * Files that are not counted: profiles of open browsers, and the cache of repositories. The cache grows with the
 * commits and has its own limit.
 */
const OTHER_FILES = /profile|chrom|\/git\//i;
/** Time in which the work that the load left must end. Compactions of repositories take minutes on a busy machine. */
const QUIET_MS_MAX = 300_000;

/** One measurement of the platform. */
export interface Sample {
  atS: number;
  /** Resident bytes of each process of ours by its name, without browsers and app processes. */
  memory: Record<string, number>;
  descriptors: Record<string, number>;
  /** Number of files in the data folders and in the temporary folder. */
  files: number;
  /** Number of child processes: browsers, git and app processes. */
  children: number;
  /** Bytes of each stream. */
  streams: Record<string, number>;
}

export interface SoakReport {
  problems: string[];
  work: Record<string, number>;
  /** `early` is the median over the second third of the run, and `late` the median over the last third. */
  figures: { name: string; early: number; late: number }[];
  jumps: number;
  /** By what the time of day jumped. */
  means: string;
}

export async function soakPlatform(minutes: number, report = console.log): Promise<SoakReport> {
  const folder = await mkdtemp(join(tmpdir(), "trunkline-soak-"));
  await chmod(folder, 0o755);
  try {
    await using nats = await startNats();
    const time = await FakeTime.start(folder);
    await using places = new AsyncDisposableStack();
    const start = async (name: string, environment: NodeJS.ProcessEnv) => {
      const instance = await RoleProcess.start(name, folder, {
        TRUNKLINE_NATS_URL: nats.url,
        TRUNKLINE_EGRESS_ALLOW: "127.0.0.0/8",
        TRUNKLINE_REQUESTS_PER_5_MINUTES: "0",
        TRUNKLINE_BROWSER_SECONDS_PER_DAY: "0",
        // All roles share one time of day, because they rely on it. Processes of apps keep the machine's.
        ...time.environment,
        ...environment,
      });
      places.use(instance);
      await instance.ready();
      return instance;
    };
    const secrets = { TRUNKLINE_SECRETS_KEY: newSecretKey() };
    const first = await start("gateway", { TRUNKLINE_ROLES: "gateway,actors", ...secrets });
    const second = await start("actors", { TRUNKLINE_ROLES: "actors", ...secrets });
    const third = await start("browser", { TRUNKLINE_ROLES: "browser" });
    const pids = { gateway: first.pid, actors: second.pid, browser: third.pid };
    await using work = await SoakWork.start(await first.credentials());
    const found = await watch({ minutes, nats, time, pids, folder, work, report });
    // The causes of failed requests are in the logs, which are removed with the folder.
    const logs = found.problems.length === 0 ? [] : [first, second, third];
    for (const line of logs.flatMap(({ lines }) => lines.filter(isError))) report(line);
    return found;
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  }
}

/** True for a line of a log with the level `error` or higher. */
const isError = (line: string) => /"level":[56]0/.test(line);

interface Watched {
  minutes: number;
  nats: TestNatsServer;
  time: FakeTime;
  pids: Record<string, number>;
  folder: string;
  work: SoakWork;
  report: (line: string) => void;
}

async function watch(watched: Watched): Promise<SoakReport> {
  const { minutes, nats, time, folder, work, report } = watched;
  const bus = await Bus.connect({ url: nats.url, name: "soak" });
  try {
    const everyMs = (minutes * 60_000) / SAMPLES;
    const pids = { ...watched.pids, "nats-server": nats.pid };
    const startAt = clock.monotonic();
    const samples: Sample[] = [];
    let jumps = 0;
    for (let count = 1; count <= SAMPLES; count++) {
      await clock.wait(Math.max(0, startAt + count * everyMs - clock.monotonic()));
      const atS = Math.round((clock.monotonic() - startAt) / 1_000);
      samples.push({ atS, ...(await look(bus, folder, pids)) });
      if (count % 6 === 0) report(JSON.stringify({ ...samples.at(-1), work: work.counts }));
      // A jump happens at every eighth sample until all jumps are done, so the end of the run has no jumps.
      if (count % 8 === 4 && jumps < JUMPS.length) {
        const seconds = JUMPS[jumps] ?? 0;
        jumps += 1;
        report(`time of day ${seconds / DAY_SECONDS} days after the truth`);
        await work.atJump(() => time.jumpTo(seconds), seconds);
      }
    }
    await time.jumpTo(0);
    const problems = [...(await work.finish()), ...growthOf(samples)];
    problems.push(...(await work.findKeptCrawls(() => time.jumpTo(PAST_CRAWLS))));
    await time.jumpTo(0);
    problems.push(...(await findLeftWork(bus, QUIET_MS_MAX)));
    const figures = figuresOf(samples);
    return { problems, work: work.counts, figures, jumps, means: time.means };
  } finally {
    await bus.close();
  }
}

async function look(bus: Bus, folder: string, pids: Record<string, number>) {
  const entries = Object.entries(pids);
  const streams: Record<string, number> = {};
  for await (const { config, state } of bus.jetstream.streams.list()) {
    streams[config.name] = state.bytes;
  }
  return {
    memory: Object.fromEntries(entries.map(([name, pid]) => [name, residentBytes(pid)])),
    descriptors: Object.fromEntries(entries.map(([name, pid]) => [name, openFilesOf(pid)])),
    files: filesBelow(folder),
    children: Object.values(pids).flatMap(childrenOf).length,
    streams,
  };
}

/** Counts the files below a folder without those of OTHER_FILES. A folder may be removed meanwhile. */
function filesBelow(folder: string, below = ""): number {
  let entries: Dirent[] = [];
  try {
    entries = readdirSync(join(folder, below), { withFileTypes: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  return entries.reduce((sum, entry) => {
    const path = join(below, entry.name);
    if (OTHER_FILES.test(path)) return sum;
    return sum + 1 + (entry.isDirectory() ? filesBelow(folder, path) : 0);
  }, 0);
}

/** Returns the medians of the second and the last third of the run. The first third is the warm-up. */
function figuresOf(samples: Sample[]): SoakReport["figures"] {
  const third = Math.floor(samples.length / 3);
  const [early, late] = [samples.slice(third, 2 * third), samples.slice(-third)];
  const [sample] = samples;
  if (!sample) return [];
  const figure = (name: string, of: (one: Sample) => number) => ({
    name,
    early: median(early.map(of)),
    late: median(late.map(of)),
  });
  const processes = Object.keys(sample.memory);
  return [
    ...processes.map((name) => figure(`memory of ${name}`, (one) => one.memory[name] ?? 0)),
    ...processes.map((name) =>
      figure(`descriptors of ${name}`, (one) => one.descriptors[name] ?? 0),
    ),
    figure("files", (one) => one.files),
    figure("child processes", (one) => one.children),
    ...Object.keys(sample.streams).map((name) =>
      figure(`bytes of ${name}`, (one) => one.streams[name] ?? 0),
    ),
  ];
}

/** Returns what grew between the second and the last third of the run by more than is in order. */
export function growthOf(samples: Sample[]): string[] {
  return figuresOf(samples).flatMap(({ name, early, late }) => {
    const bound = boundOf(name, early);
    if (late <= bound) return [];
    return [`${name} grew from ${early} to ${late}; ${Math.round(bound)} would be in order`];
  });
}

function boundOf(name: string, early: number): number {
  if (name.startsWith("memory")) return early * MEMORY_RATIO_MAX + MEMORY_BYTES_SLACK;
  if (/^descriptors|^child/.test(name)) return early + DESCRIPTORS_SLACK;
  if (name === "files") return early + FILES_SLACK;
  const isBounded = BOUNDED_STREAMS.test(name.replace("bytes of ", ""));
  return isBounded ? early + STREAM_BYTES_SLACK : Number.POSITIVE_INFINITY;
}

const median = (values: number[]) =>
  values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? 0;

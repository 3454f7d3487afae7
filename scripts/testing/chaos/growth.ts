/**
 * Measures what a leak would make grow during a long run: memory and open files of processes, files in folders,
 * streams and consumers.
 */
import { readdir } from "node:fs/promises";
import { UNUSED_CONSUMER_MS_MAX } from "../../../actors/runtime/bus/reads/read-in-order.ts";
import { systemClock as clock } from "../../../actors/runtime/lib/clock.ts";
import { findLeftWork } from "../left-work.ts";
import { residentBytes } from "../memory-watch.ts";
import { openFilesOf } from "../process-children.ts";
import { until } from "../until.ts";
import type { ChaosCluster } from "./chaos-cluster.ts";

const LOOK_MS = 2_000;
const MB = 1024 ** 2;
/**
 * Limits for a process in the last third of a run, relative to the first third: a factor and additional MB for its
 * memory, and additional open files.
 */
const MEMORY_FACTOR = 1.5;
const MEMORY_MB_MORE = 150;
const OPEN_FILES_MORE = 200;
/** Maximum time after which the servers have deleted consumers without a reader. */
const UNUSED_MS_MAX = 3 * UNUSED_CONSUMER_MS_MAX;
/**
 * Maximum number of files in the folders of processes at the end of a run: caches of repositories and profiles of
 * browsers.
 */
const FILES_MAX = 5_000;
const REST_MS_MAX = 120_000;

interface Sample {
  name: string;
  bytes: number;
  openFiles: number;
}

/** The number of consumers of each stream, by the stream's name. */
type Streams = Map<string, number>;

export class Growth implements Disposable {
  readonly #cluster: ChaosCluster;
  readonly #samples: Sample[][] = [];
  readonly #timer: NodeJS.Timeout;
  readonly #before: Streams;

  /**
   * Starts sampling. Call it when all loads have started, so that the streams that the loads need are not reported as
   * new.
   */
  static async start(cluster: ChaosCluster): Promise<Growth> {
    return new Growth(cluster, await streamsOf(cluster));
  }

  constructor(cluster: ChaosCluster, before: Streams) {
    this.#cluster = cluster;
    this.#before = before;
    this.#timer = setInterval(() => this.#look(), LOOK_MS);
    this.#look();
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  /**
   * Waits until no work is in progress, then returns what has grown too much. Call it after the loads have stopped.
   */
  async findProblems(): Promise<string[]> {
    this[Symbol.dispose]();
    const problems = await findLeftWork(this.#cluster.bus, REST_MS_MAX);
    for (const [name, { first, last }] of this.#thirds) {
      if (last.bytes > MEMORY_FACTOR * first.bytes + MEMORY_MB_MORE * MB) {
        problems.push(`${name} grew from ${inMb(first.bytes)} to ${inMb(last.bytes)} MB`);
      }
      if (last.openFiles > first.openFiles + OPEN_FILES_MORE) {
        problems.push(`${name} had ${first.openFiles} open files, then ${last.openFiles}`);
      }
    }
    const after = await streamsOf(this.#cluster);
    for (const name of after.keys()) {
      if (!this.#before.has(name)) problems.push(`stream ${name} was added`);
      const unused = await this.#unusedConsumers(name);
      if (unused > 0) problems.push(`${name} keeps ${unused} consumers that nobody uses`);
    }
    const files = await this.#countFiles();
    if (files > FILES_MAX) problems.push(`processes have left ${files} files`);
    return problems;
  }

  async report(): Promise<string[]> {
    const lines = [...this.#thirds].map(([name, { first, last }]) =>
      [
        `${name}: ${inMb(first.bytes)} MB and ${first.openFiles} open files in the first third,`,
        `${inMb(last.bytes)} MB and ${last.openFiles} in the last`,
      ].join(" "),
    );
    const consumers = [...(await streamsOf(this.#cluster))].map(
      ([name, count]) => `${name} ${this.#before.get(name)} to ${count}`,
    );
    const files = await this.#countFiles();
    return [...lines, `consumers: ${consumers.join(", ")}`, `files of processes: ${files}`];
  }

  /** The median samples of each process in the first and the last third of the run, by the process's name. */
  get #thirds(): Map<string, { first: Sample; last: Sample }> {
    const third = Math.max(1, Math.floor(this.#samples.length / 3));
    const first = mediansOf(this.#samples.slice(0, third).flat());
    const last = mediansOf(this.#samples.slice(-third).flat());
    const both = new Map<string, { first: Sample; last: Sample }>();
    for (const [name, sample] of first) {
      const later = last.get(name);
      if (later) both.set(name, { first: sample, last: later });
    }
    return both;
  }

  #look(): void {
    const samples = Array.from(this.#cluster.pids, ([name, pid]) => {
      return { name, bytes: residentBytes(pid), openFiles: openFilesOf(pid) };
    });
    this.#samples.push(samples.filter(({ bytes }) => bytes > 0));
  }

  /**
   * Counts the consumers of dead readers, after the time in which the servers delete them. A server that was restarted
   * counts this time anew.
   */
  async #unusedConsumers(stream: string): Promise<number> {
    const { consumers } = this.#cluster.bus.jetstream;
    let unused = 0;
    const areGone = async () => {
      const all = await Array.fromAsync(consumers.list(stream));
      unused = all.filter(
        ({ num_waiting, config }) => num_waiting === 0 && config.durable_name === undefined,
      ).length;
      if (unused === 0) return true;
      await clock.wait(LOOK_MS);
      return false;
    };
    await until("no consumer is unused", areGone, UNUSED_MS_MAX).catch(() => {});
    return unused;
  }

  async #countFiles(): Promise<number> {
    const { folder } = this.#cluster;
    const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
    return entries.filter((entry) => entry.isFile()).length;
  }
}

async function streamsOf({ bus }: ChaosCluster): Promise<Streams> {
  const infos = await Array.fromAsync(bus.jetstream.streams.list());
  return new Map(infos.map(({ config, state }) => [config.name, state.consumer_count]));
}

function mediansOf(samples: readonly Sample[]): Map<string, Sample> {
  const byName = Map.groupBy(samples, ({ name }) => name);
  return new Map(
    Array.from(byName, ([name, all]) => {
      const median = (values: number[]) =>
        values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;
      const bytes = median(all.map((sample) => sample.bytes));
      return [name, { name, bytes, openFiles: median(all.map(({ openFiles }) => openFiles)) }];
    }),
  );
}

const inMb = (bytes: number) => Math.round(bytes / MB);

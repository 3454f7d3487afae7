/** Two hosts whose actors are called continuously, while one host is killed or leaves, or a third host joins. */
import { systemClock as clock } from "../../../actors/runtime/lib/clock.ts";
import { SHARDS } from "../../../schemas/limits.ts";
import { type Figure, median, type Target } from "../benchmark.ts";
import type { Child } from "../child.ts";
import { BenchBus } from "./bench-bus.ts";
import type { HostFacts } from "./host-process.ts";
import type { Visits } from "./workloads.ts";

const QUIET_MS = 500;
const POLL_MS = 50;

export class HostChanges implements AsyncDisposable {
  readonly #bus: BenchBus;
  readonly #load: Child;
  #hosts: Child[];
  #started: number;

  static async start(): Promise<HostChanges> {
    const bus = await BenchBus.start();
    try {
      const load = await bus.startLoad();
      return new HostChanges(bus, load, [
        await bus.startHost("host-0"),
        await bus.startHost("host-1"),
      ]);
    } catch (error) {
      await bus[Symbol.asyncDispose]();
      throw error;
    }
  }

  constructor(bus: BenchBus, load: Child, hosts: Child[]) {
    this.#bus = bus;
    this.#load = load;
    this.#hosts = hosts;
    this.#started = hosts.length;
  }

  /** Ends a host while calls continue for `ms`. Calls that still wait after this time are awaited. */
  async end(signal: "SIGKILL" | "SIGTERM", ms: number): Promise<Visits> {
    const [victim, ...others] = this.#hosts;
    const visits = await this.#visitWhile(ms, async () => victim?.end(signal));
    this.#hosts = others;
    return visits;
  }

  /** Starts a host while calls continue. The calls end `ms` after the start began. */
  async join(ms: number): Promise<Visits> {
    return await this.#visitWhile(ms, () => this.addHost());
  }

  async addHost(): Promise<void> {
    this.#hosts.push(await this.#bus.startHost(`host-${this.#started++}`));
  }

  async #visitWhile(ms: number, change: () => Promise<unknown>): Promise<Visits> {
    await untilShared(this.#hosts);
    const visited = this.#load.ask<Visits>({
      workload: "visit",
      inFlight: SHARDS,
      ms: QUIET_MS + ms,
    });
    await clock.wait(QUIET_MS);
    await change();
    return await visited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#bus[Symbol.asyncDispose]();
  }
}

/**
 * Returns the figures of one sort of change: the longest call of all repetitions, the median of each repetition's
 * longest call, and the number of failed calls.
 */
export function changeFigures(name: string, visits: readonly Visits[], target: Target): Figure[] {
  const longest = visits.map(({ longestMs }) => longestMs);
  const failures = visits.reduce((sum, visit) => sum + visit.failures, 0);
  const times = `${visits.length} times`;
  return [
    {
      name: `${name} ${times}, longest call of all`,
      unit: "ms",
      ours: Math.max(...longest),
      target,
    },
    { name: `${name} ${times}, median of the longest calls`, unit: "ms", ours: median(longest) },
    { name: `${name} ${times}, failed calls`, unit: "", ours: failures, target: { atMost: 0 } },
  ];
}

/** Waits until every shard is open at one of the hosts, and each host has some shards. */
async function untilShared(hosts: readonly Child[]): Promise<void> {
  for (;;) {
    const facts = await Promise.all(hosts.map((host) => host.ask<HostFacts>("facts")));
    const shards = facts.map(({ openShards }) => openShards);
    const sum = shards.reduce((total, count) => total + count, 0);
    if (sum === SHARDS && !shards.includes(0)) return;
    await clock.wait(POLL_MS);
  }
}

/** How long the actors of a host are away when it is killed, and when it is stopped: the longest of their calls. */
import { systemClock as clock } from "../../../actors/runtime/lib/clock.ts";
import { SHARDS } from "../../../schemas/limits.ts";
import { type Benchmark, median } from "../benchmark.ts";
import type { Child } from "../child.ts";
import { BenchBus } from "./bench-bus.ts";
import type { HostFacts } from "./host-process.ts";
import type { Visits } from "./workloads.ts";

const TIMES = 3;
/** Calls continue for this long after a host ends: longer than a lease and the takeover. */
const KILLED_MS = 7_000;
const STOPPED_MS = 3_000;
const QUIET_MS = 500;
const POLL_MS = 50;

export const runtimeTakeover: Benchmark = {
  name: "runtime-takeover",
  async run() {
    await using bus = await BenchBus.start();
    const load = await bus.startLoad();
    let hosts = [await bus.startHost("host-0"), await bus.startHost("host-1")];
    const killed: Visits[] = [];
    const stopped: Visits[] = [];
    for (let time = 0; time < TIMES; time++) {
      killed.push(await endOne("SIGKILL", KILLED_MS));
      stopped.push(await endOne("SIGTERM", STOPPED_MS));
    }
    const failed = (visits: Visits[]) => visits.reduce((sum, { failures }) => sum + failures, 0);
    const longest = (visits: Visits[]) => median(visits.map(({ longestMs }) => longestMs));
    const [calls, failures] = ["longest call", "failed calls"];
    return [
      {
        name: `host killed, ${calls}`,
        unit: "ms",
        ours: longest(killed),
        target: { atMost: 5_000 },
      },
      { name: `host killed, ${failures}`, unit: "", ours: failed(killed) },
      {
        name: `host stopped, ${calls}`,
        unit: "ms",
        ours: longest(stopped),
        target: { atMost: 1_000 },
      },
      { name: `host stopped, ${failures}`, unit: "", ours: failed(stopped), target: { atMost: 0 } },
    ];

    async function endOne(signal: NodeJS.Signals, ms: number): Promise<Visits> {
      await untilShared(hosts);
      const [victim, ...others] = hosts;
      const visited = load.ask<Visits>({ workload: "visit", inFlight: SHARDS, ms: QUIET_MS + ms });
      await clock.wait(QUIET_MS);
      await victim?.end(signal);
      const visits = await visited;
      hosts = [...others, await bus.startHost("host-next")];
      return visits;
    }
  },
};

/** Resolves when every shard is open at one of the hosts, and each has some. */
async function untilShared(hosts: readonly Child[]): Promise<void> {
  for (;;) {
    const facts = await Promise.all(hosts.map((host) => host.ask<HostFacts>("facts")));
    const shards = facts.map(({ openShards }) => openShards);
    const sum = shards.reduce((total, count) => total + count, 0);
    if (sum === SHARDS && !shards.includes(0)) return;
    await clock.wait(POLL_MS);
  }
}

/** Measures the longest calls while hosts leave gracefully and others join, as in a rolling upgrade. */
import type { Benchmark } from "../benchmark.ts";
import { changeFigures, HostChanges } from "./host-changes.ts";
import type { Visits } from "./workloads.ts";

const TIMES = 20;
/** How long calls continue during a leave. Longer than the handover of all shards of a host. */
const CHANGED_MS = 2_000;
/** How long calls continue during a join. Longer than for a leave, because the joining process must first start. */
const JOINED_MS = 3_000;

export const runtimeRolling: Benchmark = {
  name: "runtime-rolling",
  async run() {
    await using hosts = await HostChanges.start();
    const left: Visits[] = [];
    const joined: Visits[] = [];
    for (let time = 0; time < TIMES; time++) {
      left.push(await hosts.end("SIGTERM", CHANGED_MS));
      joined.push(await hosts.join(JOINED_MS));
    }
    return [
      ...changeFigures("host left in order", left, { atMost: 500 }),
      ...changeFigures("host joined", joined, { atMost: 500 }),
    ];
  },
};

/** Measures how long the actors of a killed host are unavailable: the duration of the longest call to them. */
import type { Benchmark } from "../benchmark.ts";
import { byServers } from "./bench-bus.ts";
import { changeFigures, HostChanges } from "./host-changes.ts";
import type { Visits } from "./workloads.ts";

const TIMES = 20;
/**
 * How long calls continue after the kill: longer than a lease. Calls that still wait for the takeover after this time
 * are awaited.
 */
const KILLED_MS = 3_500;

export const runtimeTakeover: Benchmark = {
  name: "runtime-takeover",
  async run() {
    await using hosts = await HostChanges.start();
    const killed: Visits[] = [];
    for (let time = 0; time < TIMES; time++) {
      killed.push(await hosts.end("SIGKILL", KILLED_MS));
      await hosts.addHost();
    }
    return changeFigures("host killed", killed, {
      atMost: byServers({ one: 1_600, several: 2_000 }),
    });
  },
};

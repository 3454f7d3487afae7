/** Measures the memory that a host keeps for 100,000 actors that were used one time and then removed from memory. */
import { ACTIVATION_IDLE_MS } from "../../../actors/runtime/activation/activations.ts";
import { systemClock as clock } from "../../../actors/runtime/lib/clock.ts";
import type { Benchmark } from "../benchmark.ts";
import { BenchBus } from "./bench-bus.ts";
import type { HostFacts } from "./host-process.ts";

const ACTORS = 100_000;
/**
 * Number of actors that are used before the first measurement, so that code is compiled and buffers have reached
 * their size.
 */
const WARM_UP_ACTORS = 20_000;
const IN_FLIGHT = 256;
/** Tolerance of the memory figure: the memory after a garbage collection differs by this much between runs. */
const NOISE_MB = 16;
const POLL_MS = 1_000;

export const runtimePassive: Benchmark = {
  name: "runtime-passive",
  async run() {
    await using bus = await BenchBus.start();
    const host = await bus.startHost();
    const load = await bus.startLoad();
    const touch = (prefix: string, actors: number) =>
      load.ask({ workload: "touch", inFlight: IN_FLIGHT, prefix, actors });

    await touch("warm", WARM_UP_ACTORS);
    const before = await whenPassive();
    await touch("passive", ACTORS);
    const after = await whenPassive();
    const growth = (part: "rssBytes" | "heapBytes") => (after[part] - before[part]) / 1e6;
    return [
      {
        name: `host memory kept for ${ACTORS} passive actors`,
        unit: "MB RSS",
        ours: growth("rssBytes"),
        target: { atMost: NOISE_MB },
      },
      {
        name: `host memory kept for ${ACTORS} passive actors`,
        unit: "MB heap",
        ours: growth("heapBytes"),
      },
      { name: "host memory after it", unit: "MB RSS", ours: after.rssBytes / 1e6 },
    ];

    async function whenPassive(): Promise<HostFacts> {
      await clock.wait(ACTIVATION_IDLE_MS);
      for (;;) {
        const facts = await host.ask<HostFacts>("facts");
        if (facts.activations === 0) return facts;
        await clock.wait(POLL_MS);
      }
    }
  },
};

/**
 * Benchmarks mail between actors until its effect is committed. The reference is a plain publish whose message is
 * consumed and acknowledged.
 */

import { alternate, type Benchmark, type Load, loadFigures, ROUND_MS } from "../benchmark.ts";
import { BenchBus, byServers } from "./bench-bus.ts";

const IN_FLIGHT = 128;
const volume = { inFlight: IN_FLIGHT, ms: ROUND_MS };

export const runtimeMail: Benchmark = {
  name: "runtime-mail",
  async run() {
    await using bus = await BenchBus.start();
    await bus.startHost();
    const reader = await bus.startLoad();
    const load = await bus.startLoad();
    const rounds = await alternate(
      async () => {
        const consumed = reader.ask<Load>({ workload: "consume", ...volume });
        await load.ask({ workload: "publish", ...volume });
        return await consumed;
      },
      () => load.ask<Load>({ workload: "give", ...volume }),
    );
    return loadFigures(`mail to its effect, ${IN_FLIGHT} in flight`, rounds, {
      perSecond: { atLeast: byServers({ one: 2, several: 0.6 }) },
    });
  },
};

/** Benchmarks an actor call that changes nothing. The reference is a plain NATS request to a plain responder. */

import { alternate, type Benchmark, type Load, loadFigures, ROUND_MS } from "../benchmark.ts";
import { BenchBus } from "./bench-bus.ts";

const IN_FLIGHT = 64;
const volume = { inFlight: IN_FLIGHT, ms: ROUND_MS };

export const runtimeCalls: Benchmark = {
  name: "runtime-calls",
  async run() {
    await using bus = await BenchBus.start();
    await bus.startHost();
    const responder = await bus.startLoad();
    const load = await bus.startLoad();
    const rounds = await alternate(
      async () => {
        await responder.ask({ workload: "answer", ...volume, ms: ROUND_MS * 2 });
        return await load.ask<Load>({ workload: "request", ...volume });
      },
      () => load.ask<Load>({ workload: "get", ...volume }),
    );
    return loadFigures(`read call, ${IN_FLIGHT} in flight`, rounds, {
      perSecond: { atLeast: 1.8 },
      p99: { atMost: 2 },
    });
  },
};

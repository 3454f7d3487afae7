/**
 * Benchmarks an actor call with a durable change. The reference is a plain KV put of 100 bytes. The server syncs
 * every write of both to disk.
 */

import {
  alternate,
  type Benchmark,
  type Load,
  loadFigures,
  median,
  ROUND_MS,
} from "../benchmark.ts";
import { mergeLoads } from "../run-load.ts";
import { BenchBus, byServers } from "./bench-bus.ts";

const IN_FLIGHT = 128;
const volume = { inFlight: IN_FLIGHT, ms: ROUND_MS };

export const runtimeChanges: Benchmark = {
  name: "runtime-changes",
  async run() {
    await using bus = await BenchBus.start();
    await bus.startHost();
    // Trunkline uses two processes with one connection each, so the reference puts also come from two processes.
    const other = await bus.startLoad();
    const load = await bus.startLoad();
    const put = { workload: "put", ...volume, inFlight: IN_FLIGHT / 2 };
    /** Processor time of the servers for one operation of the load, in microseconds. */
    const costs: { reference: number[]; ours: number[] } = { reference: [], ours: [] };
    const measured = async (which: number[], run: () => Promise<Load>) => {
      const before = bus.serversMs;
      const done = await run();
      which.push(((bus.serversMs - before) / done.operations) * 1_000);
      return done;
    };
    const puts = () =>
      measured(costs.reference, async () =>
        mergeLoads(...(await Promise.all([load.ask<Load>(put), other.ask<Load>(put)]))),
      );

    const many = await alternate(puts, () =>
      measured(costs.ours, () => load.ask<Load>({ workload: "increment", ...volume })),
    );
    const { reference, ours } = { ...costs };
    const cost = { reference: median(reference.slice(1)), ours: median(ours.slice(1)) };
    const one = await alternate(puts, () =>
      load.ask<Load>({ workload: "incrementOne", ...volume }),
    );
    return [
      ...loadFigures(`durable change, ${IN_FLIGHT} in flight, 1,000 actors`, many, {
        perSecond: { atLeast: byServers({ one: 4, several: 1 }) },
      }),
      ...loadFigures(`durable change, ${IN_FLIGHT} in flight, one actor`, one, {
        perSecond: { atLeast: byServers({ one: 10, several: 2.5 }) },
      }),
      {
        name: `durable change, ${IN_FLIGHT} in flight, 1,000 actors`,
        unit: "µs of the servers' processors",
        ...cost,
        target: { atMost: byServers({ one: 1, several: 1.8 }) },
      },
    ];
  },
};

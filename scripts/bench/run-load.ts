/** Runs operations for a given time, always the same number in parallel, and measures the duration of each. */
import type { Load } from "./benchmark.ts";

export async function runLoad(
  { inFlight, ms }: { inFlight: number; ms: number },
  operate: (index: number) => Promise<unknown>,
): Promise<Load> {
  const latencies: number[] = [];
  const startedAt = performance.now();
  let operations = 0;
  await Promise.all(
    Array.from({ length: inFlight }, async () => {
      for (;;) {
        const before = performance.now();
        if (before - startedAt >= ms) return;
        await operate(operations++);
        latencies.push(performance.now() - before);
      }
    }),
  );
  return {
    operations,
    ms: performance.now() - startedAt,
    latencies: Float64Array.from(latencies),
  };
}

/** Merges the loads that two processes measured at the same time. */
export function mergeLoads(first: Load, second: Load): Load {
  return {
    operations: first.operations + second.operations,
    ms: Math.max(first.ms, second.ms),
    latencies: Float64Array.of(...first.latencies, ...second.latencies),
  };
}

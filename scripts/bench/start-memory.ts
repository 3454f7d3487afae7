/**
 * Measures an idle Trunkline: memory and processor time of all processes under `npm start`, including npm, without
 * Chromium; and how long a start with existing data takes.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock as clock } from "../../actors/runtime/lib/clock.ts";
import { type Benchmark, median } from "./benchmark.ts";
import { Instance } from "./instance.ts";
import { processTree } from "./process-tree.ts";

/** Pause after the start. In it, the start's garbage is collected and the first leases are renewed. */
const SETTLE_MS = 15_000;
/** V8 collects garbage once more half a minute after a start; later an instance only idles. */
const COLLECTED_MS = 30_000;
const IDLE_MS = 60_000;
const WARM_STARTS = 5;

export const startMemory: Benchmark = {
  name: "start-memory",
  async run() {
    const folder = await mkdtemp(join(tmpdir(), "trunkline-bench-"));
    const settings = { TRUNKLINE_DATA: join(folder, "data") };
    try {
      const idle = await idleFigures(settings);
      const startMs: number[] = [];
      for (let count = 0; count < WARM_STARTS; count++) startMs.push(await timeStart(settings));
      const start = { name: "npm start with existing data, until healthy", unit: "ms" };
      return [...idle, { ...start, ours: median(startMs), target: { atMost: 2_500 } }];
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
};

async function idleFigures(settings: NodeJS.ProcessEnv) {
  await using instance = await Instance.start(settings);
  await clock.wait(SETTLE_MS);
  const memory = sumByName(processTree(instance.pid).map(({ name, bytes }) => [name, bytes / 1e6]));
  await clock.wait(COLLECTED_MS);
  const cpuMs = () => sumByName(processTree(instance.pid).map(({ name, cpuMs }) => [name, cpuMs]));
  const before = cpuMs();
  await clock.wait(IDLE_MS);
  const percent = [...cpuMs()].map(
    ([name, ms]) => [name, ((ms - (before.get(name) ?? 0)) / IDLE_MS) * 100] as const,
  );
  return [
    ...figuresOf("MB PSS", [...memory], { name: "idle, without Chromium", atMost: 220 }),
    ...figuresOf("% of a core", percent, { name: "idle, without Chromium", atMost: 2 }),
  ];
}

function sumByName(parts: (readonly [string, number])[]): Map<string, number> {
  const sums = new Map<string, number>();
  for (const [name, value] of parts) sums.set(name, (sums.get(name) ?? 0) + value);
  return sums;
}

/** Figures of the sum and of each program. */
function figuresOf(
  unit: string,
  parts: (readonly [string, number])[],
  { name, atMost }: { name: string; atMost: number },
) {
  const sum = parts.reduce((total, [, value]) => total + value, 0);
  return [
    { name, unit, ours: sum, target: { atMost } },
    ...parts.map(([program, value]) => ({ name: `idle, ${program}`, unit, ours: value })),
  ];
}

async function timeStart(settings: NodeJS.ProcessEnv): Promise<number> {
  const startedAt = performance.now();
  await using _instance = await Instance.start(settings);
  return performance.now() - startedAt;
}

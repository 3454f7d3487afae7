/** Measures the memory of an idle Trunkline: all processes under `npm start`, including npm, without Chromium. */
import { systemClock as clock } from "../../actors/runtime/lib/clock.ts";
import type { Benchmark } from "./benchmark.ts";
import { Instance } from "./instance.ts";
import { processTree } from "./process-tree.ts";

/** After the start its garbage is collected and its first leases are renewed. */
const SETTLE_MS = 15_000;

export const startMemory: Benchmark = {
  name: "start-memory",
  async run() {
    await using instance = await Instance.start();
    await clock.wait(SETTLE_MS);
    const sizes = new Map<string, number>();
    for (const { name, bytes } of processTree(instance.pid)) {
      sizes.set(name, (sizes.get(name) ?? 0) + bytes / 1e6);
    }
    const total = [...sizes.values()].reduce((sum, size) => sum + size, 0);
    return [
      {
        name: "idle, without Chromium",
        unit: "MB PSS",
        ours: total,
        target: { atMost: 220 },
      },
      ...[...sizes].map(([name, size]) => ({ name: `idle, ${name}`, unit: "MB PSS", ours: size })),
    ];
  },
};

/** Measures the memory of an idle Trunkline: all processes under `npm start`, including npm, without Chromium. */
import { readdirSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { systemClock as clock } from "../../actors/runtime/lib/clock.ts";
import type { Benchmark } from "./benchmark.ts";
import { Instance } from "./instance.ts";

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
        target: { atMost: 300 },
      },
      ...[...sizes].map(([name, size]) => ({ name: `idle, ${name}`, unit: "MB PSS", ours: size })),
    ];
  },
};

/** The process and all under it, down to Chromium, whose processes are left out. Linux only. */
function processTree(root: number): { name: string; bytes: number }[] {
  const children = new Map<number, number[]>();
  for (const pid of readdirSync("/proc").map(Number).filter(Number.isInteger)) {
    const stat = readProcess(pid, "stat");
    // The name in field 2 may hold blanks and parentheses; field 4 is the parent.
    const parent = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
    children.set(parent, [...(children.get(parent) ?? []), pid]);
  }
  return branch(root);

  function branch(pid: number): { name: string; bytes: number }[] {
    const [program = "", ...parameters] = readProcess(pid, "cmdline").split("\0");
    if (/chrom|headless/.test(basename(program))) return [];
    const [, kibibytes = 0] = /^Pss:\s+(\d+) kB$/m.exec(readProcess(pid, "smaps_rollup")) ?? [];
    const script = parameters.find((parameter) => parameter.endsWith(".ts"));
    const own = { name: basename(script ?? program), bytes: Number(kibibytes) * 1_024 };
    return [own, ...(children.get(pid) ?? []).flatMap(branch)];
  }
}

function readProcess(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    return ""; // It has ended meanwhile.
  }
}

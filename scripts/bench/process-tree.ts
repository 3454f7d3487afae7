/** Measures the resources of a process and its descendants, without Chromium's processes. Linux only. */
import { readdirSync, readFileSync } from "node:fs";
import { basename } from "node:path";

export interface ProcessUse {
  name: string;
  /** Proportional set size: pages that processes share count once in all. */
  bytes: number;
  /** Processor time of all its threads so far, in steps of 10 ms. */
  cpuMs: number;
}

export function processTree(root: number): ProcessUse[] {
  const children = new Map<number, number[]>();
  for (const pid of readdirSync("/proc").map(Number).filter(Number.isInteger)) {
    const parent = Number(statFields(pid)[1]);
    children.set(parent, [...(children.get(parent) ?? []), pid]);
  }
  return branch(root);

  function branch(pid: number): ProcessUse[] {
    const [program = "", ...parameters] = readProcess(pid, "cmdline").split("\0");
    if (/chrom|headless/.test(basename(program))) return [];
    const [, kibibytes = 0] = /^Pss:\s+(\d+) kB$/m.exec(readProcess(pid, "smaps_rollup")) ?? [];
    const script = parameters.find((parameter) => parameter.endsWith(".ts"));
    const bytes = Number(kibibytes) * 1_024;
    const own = { name: basename(script ?? program), bytes, cpuMs: processorMsOf(pid) };
    return [own, ...(children.get(pid) ?? []).flatMap(branch)];
  }
}

/** Processor time of all threads of a process, in steps of 10 ms; 0 of a process that has ended. */
export function processorMsOf(pid: number): number {
  const fields = statFields(pid);
  return (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) * 10;
}

/** The fields after the name, which may contain blanks and parentheses. The second one is the parent. */
function statFields(pid: number): string[] {
  const stat = readProcess(pid, "stat");
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}

function readProcess(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    return ""; // It has ended meanwhile.
  }
}

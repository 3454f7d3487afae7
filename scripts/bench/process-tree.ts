/** Measures the resources of a process and its descendants. Linux only. */
import { readdirSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { processStat } from "../testing/process-stat.ts";

export interface ProcessUse {
  name: string;
  /** Proportional set size: memory that several processes share is counted only one time in the sum of all. */
  bytes: number;
  /** Processor time of all threads of the process until now, in steps of 10 ms. */
  cpuMs: number;
}

/** Returns the process and its descendants. Chromium's processes, and all processes below them, are left out. */
export function processTree(root: number): ProcessUse[] {
  const children = childrenOfAll();
  return branch(root);

  function branch(pid: number): ProcessUse[] {
    const [program = "", ...parameters] = readProcess(pid, "cmdline").split("\0");
    if (isBrowser(pid)) return [];
    const [, kibibytes = 0] = /^Pss:\s+(\d+) kB$/m.exec(readProcess(pid, "smaps_rollup")) ?? [];
    const script = parameters.find((parameter) => parameter.endsWith(".ts"));
    const bytes = Number(kibibytes) * 1_024;
    const own = { name: basename(script ?? program), bytes, cpuMs: processorMsOf(pid) };
    return [own, ...(children.get(pid) ?? []).flatMap(branch)];
  }
}

/**
 * Returns the processor time of a process and its descendants until now. Includes Chromium and processes that have
 * ended.
 */
export function processorMsOfTree(root: number): number {
  const children = childrenOfAll();
  return branch(root);

  function branch(pid: number): number {
    const own = processStat(pid)?.processorMsWithEnded ?? 0;
    return (children.get(pid) ?? []).reduce((sum, child) => sum + branch(child), own);
  }
}

/** Returns the number of Chromium processes below a process. */
export function browserProcesses(root: number): number {
  const children = childrenOfAll();
  const below = (pid: number): number[] => [
    pid,
    ...(children.get(pid) ?? []).flatMap((child) => below(child)),
  ];
  return below(root).filter(isBrowser).length;
}

const isBrowser = (pid: number) =>
  /chrom|headless/.test(basename(readProcess(pid, "cmdline").split("\0")[0] ?? ""));

function childrenOfAll(): Map<number, number[]> {
  const children = new Map<number, number[]>();
  for (const pid of readdirSync("/proc").map(Number).filter(Number.isInteger)) {
    const { parent } = processStat(pid) ?? {};
    if (parent === undefined) continue;
    children.set(parent, [...(children.get(parent) ?? []), pid]);
  }
  return children;
}

/** Processor time of all threads of a process, in steps of 10 ms; 0 of a process that has ended. */
export const processorMsOf = (pid: number): number => processStat(pid)?.processorMs ?? 0;

function readProcess(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    return ""; // It has ended meanwhile.
  }
}

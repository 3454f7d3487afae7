/** Reads /proc/<pid>/stat, which has a process's state, its parent, its start and its processor time. Linux only. */
import { readFileSync } from "node:fs";

/** The kernel counts processor time in ticks of this length, on every architecture that Node runs on. */
const TICK_MS = 10;

/** Places of the fields after the name, which proc(5) numbers from 3. */
const STATE = 0;
const PARENT = 1;
const USER_TIME = 11;
const SYSTEM_TIME = 12;
const SYSTEM_TIME_OF_ENDED = 14;
const NICENESS = 16;
const STARTED = 19;

export interface ProcessStat {
  /** The name of the program, at most 15 characters. */
  name: string;
  /** One letter; `Z` is a process that has ended and waits to be collected. */
  state: string;
  parent: number;
  /** 0 is the normal priority, 19 the lowest. */
  niceness: number;
  /** When the process started, in ticks since the machine started. */
  started: string;
  /** Processor time of all threads so far, in steps of 10 ms. */
  processorMs: number;
  /** Like `processorMs`, plus the processor time of all descendants that have ended and were reaped. */
  processorMsWithEnded: number;
}

/**
 * Returns undefined if the process has ended or if there is no /proc. With `thread`, reads the thread with this id.
 */
export function processStat(pid: number | string, thread?: string): ProcessStat | undefined {
  let stat: string;
  try {
    const task = thread === undefined ? "" : `/task/${thread}`;
    stat = readFileSync(`/proc/${pid}${task}/stat`, "utf8");
  } catch {
    return undefined;
  }
  // The name, in brackets, may contain blanks and brackets.
  const [begin, end] = [stat.indexOf("("), stat.lastIndexOf(")")];
  const fields = stat.slice(end + 2).split(" ");
  const msOf = (last: number) =>
    fields.slice(USER_TIME, last + 1).reduce((sum, ticks) => sum + Number(ticks) * TICK_MS, 0);
  return {
    name: stat.slice(begin + 1, end),
    state: fields[STATE] ?? "",
    parent: Number(fields[PARENT]),
    niceness: Number(fields[NICENESS]),
    started: fields[STARTED] ?? "",
    processorMs: msOf(SYSTEM_TIME),
    processorMsWithEnded: msOf(SYSTEM_TIME_OF_ENDED),
  };
}

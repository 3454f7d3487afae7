/** Inspects and suspends processes that other processes started. Linux only: on other systems it finds none. */
import { readdirSync, readFileSync } from "node:fs";
import { membersOf } from "../../actors/rendering/lib/browser/process-memory.ts";
import { processStat } from "./process-stat.ts";
import { until } from "./until.ts";

export function childrenOf(pid: number): number[] {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
    return text.split(" ").filter(Boolean).map(Number);
  } catch {
    return []; // It has ended.
  }
}

/** Counts the open files and sockets of a process. Returns 0 if the process has ended. */
export function openFilesOf(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/fd`).length;
  } catch {
    return 0;
  }
}

/** Returns the process's command line. Empty if the process has ended. */
function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
  } catch {
    return "";
  }
}

/**
 * Returns whether a process runs the code of an app. Hosts start other processes too, to test what app users may do.
 */
export const isOfApp = (pid: number) => commandOf(pid).includes("actors/apps/process/main.ts");

/**
 * Returns a mark that distinguishes a process from others with the same pid, because pids are reused within minutes
 * on a busy machine. Undefined if the process does not run.
 */
export function processMark(pid: number): string | undefined {
  const stat = processStat(pid);
  return stat === undefined || stat.state === "Z" ? undefined : `${pid} ${stat.started}`;
}

/** Returns whether a process runs. A process that has ended but was not reaped yet (a zombie) does not run. */
export function isRunning(pid: number): boolean {
  const stat = processStat(pid);
  return stat !== undefined && stat.state !== "Z";
}

/**
 * Suspends a process with SIGSTOP, and waits until all its threads are suspended. After kill(2) returns, some threads
 * may still run until the signal reaches them.
 */
export async function stopProcess(pid: number): Promise<void> {
  process.kill(pid, "SIGSTOP");
  await until("it stands still", () => standsStill(pid));
}

/**
 * Suspends all processes of a group. A browser's first process may be a shell that waits for the browser, so
 * suspending that process is not enough.
 */
export async function stopGroup(group: number): Promise<void> {
  process.kill(-group, "SIGSTOP");
  await until("they stand still", async () => (await membersOf(group))?.every(standsStill));
}

/** Returns true if all threads are suspended. A zombie (an ended process that was not reaped) counts as suspended. */
const standsStill = (pid: number | string) =>
  statesOfThreads(pid).every((state) => state === "T" || state === "Z");

function statesOfThreads(pid: number | string): (string | undefined)[] {
  try {
    return readdirSync(`/proc/${pid}/task`).map((id) => processStat(pid, id)?.state);
  } catch {
    return ["?"]; // One ended meanwhile.
  }
}

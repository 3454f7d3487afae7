/** Looks at processes that others started. Linux only: elsewhere there are none to see. */
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

/** Counts the open files and sockets of a process; 0 of one that has ended. */
export function openFilesOf(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/fd`).length;
  } catch {
    return 0;
  }
}

/** With its parameters; empty of one that has ended. */
function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
  } catch {
    return "";
  }
}

/** Whether it runs code of an app: hosts start others too, to see what they may do. */
export const isOfApp = (pid: number) => commandOf(pid).includes("actors/apps/process/main.ts");

/**
 * Returns a mark that distinguishes a process from others with the same pid, because pids are reused within minutes
 * on a busy machine. Undefined if the process does not run.
 */
export function processMark(pid: number): string | undefined {
  const stat = processStat(pid);
  return stat === undefined || stat.state === "Z" ? undefined : `${pid} ${stat.started}`;
}

/** Whether the process is there; one that has ended and waits to be collected is not. */
export function isRunning(pid: number): boolean {
  const stat = processStat(pid);
  return stat !== undefined && stat.state !== "Z";
}

/**
 * Stops it. A signal may still be on its way to some of its threads when kill(2) has returned: until then they work.
 */
export async function stopProcess(pid: number): Promise<void> {
  process.kill(pid, "SIGSTOP");
  await until("it stands still", () => standsStill(pid));
}

/** Stops all processes of a group: the first of a browser may be a shell, which waits for the browser itself. */
export async function stopGroup(group: number): Promise<void> {
  process.kill(-group, "SIGSTOP");
  await until("they stand still", async () => (await membersOf(group))?.every(standsStill));
}

/** A process that has ended but was not waited for does nothing either. */
const standsStill = (pid: number | string) =>
  statesOfThreads(pid).every((state) => state === "T" || state === "Z");

function statesOfThreads(pid: number | string): (string | undefined)[] {
  try {
    return readdirSync(`/proc/${pid}/task`).map((id) => processStat(pid, id)?.state);
  } catch {
    return ["?"]; // One ended meanwhile.
  }
}

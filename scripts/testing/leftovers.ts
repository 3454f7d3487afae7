/** Ends the processes that a test run left behind, in whatever process group or session they are. Linux only. */
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** Every process a test starts inherits this variable; its value begins with the run's mark. */
export const RUN_VARIABLE = "TRUNKLINE_TEST_RUN";

/** A helper whose input closes with its parent ends by itself, on a busy machine some time later. */
const END_MS_MAX = 5_000;
const LOOK_MS = 20;

/**
 * Resolves with the marked processes besides `keep` that are still there after `ms`; with none as soon as all have
 * ended.
 */
export async function leftAfter(
  mark: string,
  keep: number | undefined,
  ms: number,
): Promise<number[]> {
  await until(() => leftovers(mark, keep).length === 0, ms);
  return leftovers(mark, keep);
}

/**
 * Gives these and all marked processes the time to end by themselves. Kills those that stay, and returns their command
 * lines.
 */
export async function endLeftoversThatStay(mark: string, pids: number[]): Promise<string[]> {
  const left = () => [...new Set([...leftovers(mark), ...pids.filter(isAlive)])];
  await until(() => left().length === 0);
  return left().map(kill);
}

/** Kills every process with this mark; resolves when all have ended. */
export async function endAll(mark: string): Promise<void> {
  const killed = new Set<number>();
  await until(() => {
    for (const pid of leftovers(mark)) {
      kill(pid);
      killed.add(pid);
    }
    // The kernel frees a process's memory first, and with it the mark. It closes the sockets later.
    return ![...killed].some(holdsSockets);
  });
}

/** Returns the command line of the process that it kills. */
function kill(pid: number): string {
  const line = `${pid} ${readProcess(pid, "cmdline").join(" ").trim()}`;
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // The server has ended by itself.
  }
  return line;
}

const isAlive = (pid: number) => readProcess(pid, "cmdline").join("") !== "";

/** Marked processes, and all below them: some are started with an environment of their own, without the mark. */
function leftovers(mark: string, keep?: number): number[] {
  const living = processes().map((pid) => ({ pid, parent: parentOf(pid) }));
  const isMarked = (pid: number) =>
    readProcess(pid, "environ").some((line) => line.startsWith(`${RUN_VARIABLE}=${mark}`));
  const found = new Set(living.map(({ pid }) => pid).filter(isMarked));
  // A set also visits what is added while it is read.
  for (const above of found) {
    for (const { pid, parent } of living) if (parent === above) found.add(pid);
  }
  found.delete(process.pid);
  if (keep !== undefined) found.delete(keep);
  return [...found];
}

function processes(): number[] {
  try {
    return readdirSync("/proc").map(Number).filter(Number.isInteger);
  } catch {
    return []; // Not Linux: the tests' own exit handlers are all there is.
  }
}

function parentOf(pid: number): number {
  return Number(statOf(pid)[1]);
}

/** Returns false for a process that has ended, also if its parent has not reaped it yet. */
function holdsSockets(pid: number): boolean {
  const [state = ""] = statOf(pid);
  return state !== "" && state !== "Z" && state !== "X";
}

/** Returns the fields of a process from its state on (proc_pid_stat(5)). */
function statOf(pid: number): string[] {
  // The name in parentheses may hold spaces and parentheses.
  const [stat = ""] = readProcess(pid, "stat");
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}

/** Reads a file of a process in /proc; returns nothing for one that has ended or belongs to another user. */
function readProcess(pid: number, file: "environ" | "cmdline" | "stat"): string[] {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8").split("\0");
  } catch {
    return [];
  }
}

async function until(isDone: () => boolean, withinMs = END_MS_MAX): Promise<boolean> {
  for (let waited = 0; waited < withinMs; waited += LOOK_MS) {
    if (isDone()) return true;
    await sleep(LOOK_MS);
  }
  return isDone();
}

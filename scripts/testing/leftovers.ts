/** Ends the processes that a test run left behind, whatever their process group or session is. Linux only. */
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/**
 * Environment variable that every process started by a test inherits. Its value begins with the mark of the test run.
 */
export const RUN_VARIABLE = "TRUNKLINE_TEST_RUN";

/**
 * Maximum time for helper processes to exit. Some helpers exit only when the exit of their parent closes their input.
 * On a busy machine this takes longer.
 */
const END_MS_MAX = 5_000;
/** Maximum time for the kernel to end a killed process, which takes long on a busy machine if it had much memory. */
const KILLED_MS_MAX = 60_000;
const LOOK_MS = 20;

/** Places in the list that `statOf` returns. proc_pid_stat(5) numbers them from 3. */
const STATE = 0;
const PARENT = 1;
const THREADS = 17;

/**
 * Waits until all marked processes except `keep` have ended, at most `ms`. Returns the pids of those that are left.
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
 * Waits some time for the processes `pids` and all marked processes to end. Kills those that are left, and returns
 * their command lines.
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
    // Also waits until the killed processes have closed their sockets. The kernel first frees a process's memory, and
    // with it the mark, and closes the sockets later.
    return ![...killed].some(holdsSockets);
  }, KILLED_MS_MAX);
}

/** Kills a process and returns its command line. */
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

/**
 * Returns the marked processes and all their descendants, because some descendants have another environment without
 * the mark.
 */
function leftovers(mark: string, keep?: number): number[] {
  const living = processes().map((pid) => ({ pid, parent: parentOf(pid) }));
  const isMarked = (pid: number) =>
    readProcess(pid, "environ").some((line) => line.startsWith(`${RUN_VARIABLE}=${mark}`));
  const found = new Set(living.map(({ pid }) => pid).filter(isMarked));
  // The loop also visits the pids that are added to the set during the loop.
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
  return Number(statOf(pid)[PARENT]);
}

/**
 * Returns false for a process that has ended, even if its parent has not reaped it yet (a zombie). A killed process
 * already counts as a zombie when its first thread has ended, but its sockets stay open until the last one has.
 */
function holdsSockets(pid: number): boolean {
  const { [STATE]: state = "", [THREADS]: threads } = statOf(pid);
  if (state === "Z") return Number(threads) > 1;
  return state !== "" && state !== "X";
}

/** Returns the fields of the process's stat file after the name, beginning with the state (proc_pid_stat(5)). */
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

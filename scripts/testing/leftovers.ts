/** Ends what a test run left behind: every process that inherited its mark, in whatever group or session it is. */
import { readdirSync, readFileSync } from "node:fs";

/** Every process a test starts inherits this variable; its value begins with the run's. */
export const RUN_VARIABLE = "TRUNKLINE_TEST_RUN";

/** Kills every living process whose mark begins with this one and returns their command lines. Linux only. */
export function endLeftovers(run: string): string[] {
  const ended: string[] = [];
  for (const pid of processes()) {
    const environment = readProcess(pid, "environ");
    if (
      pid === process.pid ||
      !environment.some((line) => line.startsWith(`${RUN_VARIABLE}=${run}`))
    ) {
      continue;
    }
    ended.push(`${pid} ${readProcess(pid, "cmdline").join(" ").trim()}`);
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It ended by itself meanwhile.
    }
  }
  return ended;
}

function processes(): number[] {
  try {
    return readdirSync("/proc").map(Number).filter(Number.isInteger);
  } catch {
    return []; // Not Linux: the tests' own exit handlers are all there is.
  }
}

/** One of the lists the kernel keeps of a process; empty for one that has ended or is another user's. */
function readProcess(pid: number, list: "environ" | "cmdline"): string[] {
  try {
    return readFileSync(`/proc/${pid}/${list}`, "utf8").split("\0");
  } catch {
    return [];
  }
}

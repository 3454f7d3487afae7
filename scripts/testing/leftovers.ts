/** Ends what a test run left behind: every process that inherited its mark, in whatever group or session it is. */
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** Every process a test starts inherits this variable; its value begins with the run's. */
export const RUN_VARIABLE = "TRUNKLINE_TEST_RUN";

/** A helper whose input closes with its parent ends by itself, on a busy machine some time later. */
const END_MS_MAX = 5_000;
const LOOK_MS = 20;

/** As endLeftovers(), once those that end by themselves have had the time to. */
export async function endLeftoversThatStay(run: string): Promise<string[]> {
  for (let waited = 0; waited < END_MS_MAX && leftovers(run).length > 0; waited += LOOK_MS) {
    await sleep(LOOK_MS);
  }
  return endLeftovers(run);
}

/** Kills every living process whose mark begins with this one and returns their command lines. Linux only. */
export function endLeftovers(run: string): string[] {
  return leftovers(run).map((pid) => {
    const said = `${pid} ${readProcess(pid, "cmdline").join(" ").trim()}`;
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It ended by itself meanwhile.
    }
    return said;
  });
}

function leftovers(run: string): number[] {
  const mark = `${RUN_VARIABLE}=${run}`;
  return processes().filter(
    (pid) =>
      pid !== process.pid && readProcess(pid, "environ").some((line) => line.startsWith(mark)),
  );
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

/** Looks at processes that others started. Linux only: elsewhere there are none to see. */
import { readdirSync, readFileSync } from "node:fs";
import { until } from "./until.ts";

export function childrenOf(pid: number): number[] {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
    return text.split(" ").filter(Boolean).map(Number);
  } catch {
    return []; // It has ended.
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
export const isOfApp = (pid: number) => commandOf(pid).includes("agents/process/main.ts");

/**
 * What tells this process from any that had its number, or will: numbers come again within minutes where many processes start.
 * Undefined where there is none, or it has ended.
 */
export function processMark(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const [state, ...fields] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    // The 22nd of all: when it started.
    return state === "Z" ? undefined : `${pid} ${fields[18]}`;
  } catch {
    return undefined;
  }
}

/** Whether the process is there; one that has ended and waits to be collected is not. */
export function isRunning(pid: number): boolean {
  try {
    return stateIn(readFileSync(`/proc/${pid}/stat`, "utf8")) !== "Z";
  } catch {
    return false;
  }
}

/** Stops it. A signal may still be on its way to some of its threads when kill(2) has returned: until then they work. */
export async function stopProcess(pid: number): Promise<void> {
  process.kill(pid, "SIGSTOP");
  await until("it stands still", () => statesOfThreads(pid).every((state) => state === "T"));
}

function statesOfThreads(pid: number): (string | undefined)[] {
  try {
    const folder = `/proc/${pid}/task`;
    return readdirSync(folder).map((id) => stateIn(readFileSync(`${folder}/${id}/stat`, "utf8")));
  } catch {
    return ["?"]; // One ended meanwhile.
  }
}

/** After the name, which may hold anything. */
const stateIn = (stat: string) => stat.slice(stat.lastIndexOf(")") + 2)[0];

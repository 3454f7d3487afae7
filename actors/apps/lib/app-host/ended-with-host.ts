/**
 * Makes the kernel kill app processes when their host ends, whatever they are doing. A process itself notices the end
 * of its host only between two steps of its code. Such a step may never end, and a stopped process (SIGSTOP) runs no
 * steps.
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { ProcessProgram } from "../app-process/process-program.ts";

/**
 * `setpriv` of util-linux. It replaces itself with the started program, which keeps the same process id, channel and
 * output.
 */
const SETPRIV = "/usr/bin/setpriv";
const PARAMETERS = ["--pdeathsig", "KILL", "--"];

/** Returns the same program, but the kernel kills it when the thread that started it ends. */
export function endedWithHost(program: ProcessProgram): ProcessProgram {
  return (folders) => {
    const { main, options } = program(folders);
    const execArgv = [...PARAMETERS, process.execPath, ...options.execArgv];
    return { main, options: { ...options, execPath: SETPRIV, execArgv } };
  };
}

/** Returns the reason why the kernel cannot kill processes with their host; undefined if it can. */
export async function whyNotEnded(): Promise<string | undefined> {
  try {
    await promisify(execFile)(SETPRIV, [...PARAMETERS, process.execPath, "--version"]);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

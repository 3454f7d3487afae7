/**
 * Has the kernel end the processes of apps with their host: it does so whatever they are at. By themselves they
 * notice only between two steps of their code, which may have no end, and not while they are stopped.
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { ProcessProgram } from "../app-process/process-program.ts";

/** `setpriv` of util-linux. The started program replaces it, with the same process id, channel and output. */
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

/** Returns the reason why the kernel cannot do this; undefined if it can. */
export async function whyNotEnded(): Promise<string | undefined> {
  try {
    await promisify(execFile)(SETPRIV, [...PARAMETERS, process.execPath, "--version"]);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

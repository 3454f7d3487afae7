/** Tells what a process is, so that none is ended for having the number of another that is gone. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

/** The command line of a living process; empty where there is none, or it has ended and its parent has not heard. */
export function processCommand(pid: number): string {
  try {
    if (process.platform === "linux") {
      return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();
    }
    const command = ["-o", "args=", "-p", String(pid)];
    return execFileSync("ps", command, { encoding: "utf8", stdio: "pipe" }).trim();
  } catch {
    return ""; // No such process.
  }
}

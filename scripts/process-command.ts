/**
 * Identifies a process by its command line, so that nobody ends an unrelated process that has reused an old process
 * id.
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

/** Returns the command line of a process. Empty if the process does not exist or is a zombie. */
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

/** How many agents one process may have open, by the files that it may open. */
import { readFileSync } from "node:fs";

/** Files that an open agent holds: its database and the write-ahead file of that. */
export const APP_AGENT_FILES = 2;
/** Files of a process besides those of its agents: some 30 of Node, and APP_WAL_FILES_MAX. */
export const APP_PROCESS_FILES = 160;

/** A process has the limit of its host. Where there is no /proc, the smallest that systems set is assumed. */
export function agentsByOpenFiles(files = openFilesMax()): number {
  return Math.max(1, Math.floor((files - APP_PROCESS_FILES) / APP_AGENT_FILES));
}

const FILES_MIN = 1_024;

function openFilesMax(): number {
  try {
    const limits = readFileSync("/proc/self/limits", "utf8");
    const [, soft = ""] = /^Max open files\s+(\S+)/m.exec(limits) ?? [];
    return soft === "unlimited" ? Number.MAX_SAFE_INTEGER : Number(soft) || FILES_MIN;
  } catch {
    return FILES_MIN;
  }
}

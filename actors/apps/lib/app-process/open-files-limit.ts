/** Computes how many agents one process may have open from the limit of open files. */
import { readFileSync } from "node:fs";

/** Open files of one agent: its database and the write-ahead file. */
export const APP_AGENT_FILES = 2;
/**
 * Limit of the open files of a process without those of its agents: some 30 of Node, APP_WAL_FILES_MAX, and a margin.
 */
export const APP_PROCESS_FILES = 160;

/**
 * Returns how many agents a process may have open. A process has the same limit of open files as its host. Without
 * /proc, the smallest usual limit is assumed.
 */
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

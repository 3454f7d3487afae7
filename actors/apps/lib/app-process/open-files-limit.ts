/** How many agents one process may have open, by the files that it may open. */
import { readFileSync } from "node:fs";
import { APP_AGENT_FILES, APP_PROCESS_FILES } from "../../../../schemas/apps/app-limits.ts";

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

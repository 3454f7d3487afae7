/**
 * The open descriptors of agents' write-ahead files. Only a few are open at a time, so that agents do not use up
 * descriptors.
 */
import { closeSync, openSync } from "node:fs";
import { APP_WAL_FILES_MAX } from "../../../schemas/apps/limits.ts";

/** Descriptors by path; the most recently used comes last. */
const open = new Map<string, number>();
let last = "";

/**
 * Returns the descriptor of a file. It is valid until the next call. Returns undefined if the file does not exist.
 */
export function walFile(path: string): number | undefined {
  const known = open.get(path);
  if (known !== undefined && path === last) return known;
  const file = known ?? opened(path);
  if (file === undefined) return undefined;
  open.delete(path);
  open.set(path, file);
  last = path;
  if (open.size > APP_WAL_FILES_MAX) {
    const [oldest = ""] = open.keys();
    closeWalFile(oldest);
  }
  return file;
}

/** Closes a file that is about to be deleted or replaced. */
export function closeWalFile(path: string): void {
  const file = open.get(path);
  if (file !== undefined) closeSync(file);
  open.delete(path);
}

function opened(path: string): number | undefined {
  try {
    return openSync(path, "r");
  } catch {
    // SQLite creates the file with the first write, so it does not exist yet.
    return undefined;
  }
}

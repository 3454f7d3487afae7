/** Write-ahead files that this process has open to read them: few of many agents, so that each costs no descriptor. */
import { closeSync, openSync } from "node:fs";
import { APP_WAL_FILES_MAX } from "../../../schemas/apps/limits.ts";

/** By the path of the file; the one that was used last is the last. */
const open = new Map<string, number>();
let last = "";

/** Returns the descriptor of a file, until the next one is asked for; undefined where there is no such file. */
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

/** The file is about to go, or to be another under the same name. */
export function closeWalFile(path: string): void {
  const file = open.get(path);
  if (file !== undefined) closeSync(file);
  open.delete(path);
}

function opened(path: string): number | undefined {
  try {
    return openSync(path, "r");
  } catch {
    // The file appears with the first write.
    return undefined;
  }
}

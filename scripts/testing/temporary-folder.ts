/** Chooses where a run of tests keeps its temporary files. */
import { statfs } from "node:fs/promises";
import { tmpdir } from "node:os";
import { MEMORY_FOLDER } from "../../actors/apps/lib/app-host/process-folders.ts";
import type { Suite } from "./test-selection.ts";

/** Free bytes that a file system in memory must have. The files of one run take less than a tenth of it. */
const MEMORY_BYTES_MIN = 4 * 1024 ** 3;

/**
 * Returns the folder that TMPDIR names. Without TMPDIR, returns the folder in memory for quick tests, if it has enough
 * space: each write to the bus is synced, which took a sixth of the tests' processor time on a disk. Fault tests stay
 * on the disk, because its delays let faults strike between a write and its acknowledgement.
 */
export async function temporaryFolder(suite: Suite): Promise<string> {
  if (process.env.TMPDIR !== undefined || suite === "faults") return tmpdir();
  try {
    const { bavail, bsize } = await statfs(MEMORY_FOLDER);
    return bavail * bsize < MEMORY_BYTES_MIN ? tmpdir() : MEMORY_FOLDER;
  } catch {
    return tmpdir(); // Not Linux: there is no such folder.
  }
}

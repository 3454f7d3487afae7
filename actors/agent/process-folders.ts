/** Where processes of apps have their folders: in memory where there is such a file system, and never left behind for long. */
import { existsSync } from "node:fs";
import { chmod, mkdtemp, readdir, readFile, rm, stat, utimes } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { APP_FOLDER_LEFT_MS, APP_MEMORY_FOLDER_BYTES_MIN } from "../../schemas/app-limits.ts";
import { fileSystemBytes } from "../runtime/file-system-bytes.ts";

/** Databases are as quick as they can be there; what they hold is kept in their logs. */
const MEMORY_FOLDER = "/dev/shm";
const PREFIX = "trunkline-apps-";

/** A folder of this host alone. Removes those of hosts that were killed, with processes that outlived them. */
export async function openProcessFolder(memoryFolder = MEMORY_FOLDER): Promise<string> {
  const root = await rootIn(memoryFolder);
  await removeLeft(root);
  const folder = await mkdtemp(join(root, PREFIX));
  // Users of apps pass through to what is theirs, and see nothing else.
  await chmod(folder, 0o711);
  return folder;
}

/** Where there is too little memory, ordinary files: a few databases would fill what containers have of it. */
export const rootIn = async (memoryFolder: string): Promise<string> =>
  (await fileSystemBytes(memoryFolder)) < APP_MEMORY_FOLDER_BYTES_MIN ? tmpdir() : memoryFolder;

/** Says that the host of this folder lives. */
export async function touch(folder: string): Promise<void> {
  const now = new Date();
  await utimes(folder, now, now).catch(() => {}); // One that cannot be touched is gone.
}

async function removeLeft(root: string): Promise<void> {
  for (const name of await readdir(root)) {
    if (!name.startsWith(PREFIX)) continue;
    const folder = join(root, name);
    try {
      const { mtimeMs, uid } = await stat(folder);
      const isOurs = uid === process.getuid?.();
      if (!isOurs || Date.now() - mtimeMs < APP_FOLDER_LEFT_MS) continue;
      await endProcessesOf(folder);
      await rm(folder, { recursive: true, force: true });
    } catch {
      // Another host, which starts at the same time, has removed it.
    }
  }
}

/** Code that never pauses does not notice that its host is gone, and not everywhere does the kernel end it then. */
async function endProcessesOf(folder: string): Promise<void> {
  const pids = existsSync("/proc")
    ? (await readdir("/proc")).filter((name) => /^\d+$/.test(name))
    : [];
  for (const pid of pids) {
    try {
      const commandLine = await readFile(`/proc/${pid}/cmdline`, "utf8");
      if (commandLine.includes(`${folder}/`)) process.kill(Number(pid), "SIGKILL");
    } catch {
      // It has ended by itself.
    }
  }
}

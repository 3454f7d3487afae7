/**
 * The folders of app processes: in memory if there is such a file system, and removed soon after their host has
 * ended.
 */

import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, lstat, mkdir, readdir, readFile, rm } from "node:fs/promises";
import { connect, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AGENT_DATABASE_BYTES_MAX } from "../../../../schemas/apps/limits.ts";
import { fileSystemBytes } from "../../../runtime/store/file-system-bytes.ts";

/**
 * A file system in memory that is smaller takes no databases: sixteen of the largest fit. Containers often have 64 MB
 * of it.
 */
export const APP_MEMORY_FOLDER_BYTES_MIN = 16 * AGENT_DATABASE_BYTES_MAX;

/** Databases are as quick as they can be there; what they hold is kept in their logs. */
export const MEMORY_FOLDER = "/dev/shm";
const PREFIX = "trunkline-apps-";
const LOCK = ".lock";

/**
 * Containers often have little shared memory, which a few databases would fill. Then the folders are ordinary files.
 */
export const rootIn = async (memoryFolder: string): Promise<string> =>
  (await fileSystemBytes(memoryFolder)) < APP_MEMORY_FOLDER_BYTES_MIN ? tmpdir() : memoryFolder;

/** A folder of this host alone. Removes those of hosts that have ended, with processes that outlived them. */
export async function openProcessFolder(memoryFolder = MEMORY_FOLDER): Promise<ProcessFolder> {
  const root = await rootIn(memoryFolder);
  await removeLeftFolders(root);
  const folder = new ProcessFolder(join(root, `${PREFIX}${randomBytes(6).toString("hex")}`));
  await folder.ensure();
  return folder;
}

/**
 * Held by a socket beside it that this process listens on: the kernel closes it with the process, however that ends,
 * and no clock says who lives. A process that stands still holds it too.
 */
export class ProcessFolder {
  readonly path: string;
  #lock: Server | undefined;

  constructor(path: string) {
    this.path = path;
  }

  /** Makes it and its lock again where something outside has removed them; true where the folder was gone. */
  async ensure(): Promise<boolean> {
    // The lock first: a folder without one is a folder that was left.
    if (this.#lock === undefined || !existsSync(this.path + LOCK)) await this.#listen();
    if (await this.#isThere()) return false;
    await mkdir(this.path, { mode: 0o700 });
    // Users of apps pass through to what is theirs, and see nothing else.
    await chmod(this.path, 0o711);
    return true;
  }

  async remove(): Promise<void> {
    await rm(this.path, { recursive: true, force: true });
    this.#lock?.close();
    this.#lock = undefined;
    await rm(this.path + LOCK, { force: true });
  }

  /** Throws where somebody else has put something in its place. */
  async #isThere(): Promise<boolean> {
    const found = await lstat(this.path).catch(() => undefined);
    if (found === undefined) return false;
    if (found.isDirectory() && found.uid === process.getuid?.()) return true;
    throw new Error(`Cannot use ${this.path}: it is no folder of this process's user`);
  }

  async #listen(): Promise<void> {
    this.#lock?.close();
    this.#lock = undefined;
    const lock = createServer((socket) => socket.destroy());
    lock.listen(this.path + LOCK);
    await once(lock, "listening");
    lock.unref();
    this.#lock = lock;
    await chmod(this.path + LOCK, 0o600);
  }
}

/** Removes the folders below `root` whose hosts have ended, and kills what still runs in them. */
export async function removeLeftFolders(root: string): Promise<void> {
  const names = (await readdir(root)).filter((name) => name.startsWith(PREFIX));
  const folders = new Set(names.map((name) => name.replace(LOCK, "")));
  for (const name of folders) {
    const folder = join(root, name);
    try {
      const { uid } = await lstat(names.includes(name) ? folder : folder + LOCK);
      const isOurs = uid === process.getuid?.();
      if (!isOurs || (await isHeld(folder + LOCK))) continue;
      await endProcessesOf(folder);
      await rm(folder, { recursive: true, force: true });
      await rm(folder + LOCK, { force: true });
    } catch {
      // Another host that starts at the same time has removed the folder.
    }
  }
}

/** False only where surely nobody listens: a full queue of connections is a living process too. */
async function isHeld(lock: string): Promise<boolean> {
  const socket = connect(lock);
  try {
    await once(socket, "connect");
    return true;
  } catch (error) {
    return !["ECONNREFUSED", "ENOENT"].includes((error as NodeJS.ErrnoException).code ?? "");
  } finally {
    socket.destroy();
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
      // The process has ended by itself.
    }
  }
}

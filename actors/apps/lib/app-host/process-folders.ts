/**
 * The folders of app processes: in memory if there is such a file system. A host removes its own folder when it
 * stops, and the folders of killed hosts when it starts.
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
 * Smallest in-memory file system that is used. It holds sixteen databases of the largest size. Containers often have
 * only 64 MB.
 */
export const APP_MEMORY_FOLDER_BYTES_MIN = 16 * AGENT_DATABASE_BYTES_MAX;

/** Databases are fastest in memory, and their contents are durable in their logs. */
export const MEMORY_FOLDER = "/dev/shm";
const PREFIX = "trunkline-apps-";
const LOCK = ".lock";

/**
 * Returns the parent of the folders. Containers often have little shared memory, which a few databases would fill. In
 * that case it is an ordinary folder on disk.
 */
export const rootIn = async (memoryFolder: string): Promise<string> =>
  (await fileSystemBytes(memoryFolder)) < APP_MEMORY_FOLDER_BYTES_MIN ? tmpdir() : memoryFolder;

/**
 * Creates the folder of this host. Removes the folders of hosts that have ended, and kills processes that outlived
 * their host.
 */
export async function openProcessFolder(memoryFolder = MEMORY_FOLDER): Promise<ProcessFolder> {
  const root = await rootIn(memoryFolder);
  await removeLeftFolders(root);
  const folder = new ProcessFolder(join(root, `${PREFIX}${randomBytes(6).toString("hex")}`));
  await folder.ensure();
  return folder;
}

/**
 * A folder that is locked by a listening socket beside it. The kernel closes the socket however the process ends, so
 * the lock needs no expiry time. A stopped process (SIGSTOP) still holds its folder.
 */
export class ProcessFolder {
  readonly path: string;
  #lock: Server | undefined;

  constructor(path: string) {
    this.path = path;
  }

  /**
   * Creates the folder and its lock again if another program has removed them. Returns true if the folder was gone.
   */
  async ensure(): Promise<boolean> {
    // The lock comes first, because a folder without a lock counts as abandoned.
    if (this.#lock === undefined || !existsSync(this.path + LOCK)) await this.#listen();
    if (await this.#isThere()) return false;
    await mkdir(this.path, { mode: 0o700 });
    // Users of apps may pass through to their own folder, but cannot list the other folders.
    await chmod(this.path, 0o711);
    return true;
  }

  async remove(): Promise<void> {
    await rm(this.path, { recursive: true, force: true });
    this.#lock?.close();
    this.#lock = undefined;
    await rm(this.path + LOCK, { force: true });
  }

  /** Returns whether the folder exists. Throws if another user has put a file or folder in its place. */
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

/** Removes the folders below `root` whose hosts have ended, and kills the processes that still run in them. */
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

/**
 * Returns false only if surely no process listens on the lock. A full connection queue also means a running process.
 */
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

/**
 * Kills the processes of a folder. Code that never yields does not notice the end of its host, and not every kernel
 * kills its process then.
 */
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

/**
 * A lock between processes of this machine. If the holder has ended, another process can take the lock. Processes
 * that notice this at the same moment may all get the lock, so use it only to avoid duplicate work.
 */
import { lstat, readlink, rm, symlink } from "node:fs/promises";
import { setTimeout as wait } from "node:timers/promises";

const POLL_MS = 50;
/** A lock of this age has no holder: its process id may belong to another process by now. Builds take two minutes. */
const AGE_MS_MAX = 10 * 60_000;

/** Waits for the lock, runs the action, and frees the lock. The lock is a link whose target is its holder's process id. */
export async function withLock<T>(path: string, action: () => Promise<T>): Promise<T> {
  while (!(await isTaken(path))) await wait(POLL_MS);
  try {
    return await action();
  } finally {
    await rm(path, { force: true });
  }
}

/**
 * Tries once to take the lock, and returns true if it did. If the holder has ended or the lock is too old, removes
 * the lock for the next attempt.
 */
async function isTaken(path: string): Promise<boolean> {
  try {
    await symlink(String(process.pid), path);
    return true;
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
    const holder = Number(await readlink(path).catch(() => process.pid));
    if (!isAlive(holder) || (await isOld(path))) await rm(path, { force: true });
    return false;
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // EPERM: the process runs, but belongs to another user.
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

async function isOld(path: string): Promise<boolean> {
  const made = await lstat(path).catch(() => undefined);
  return made !== undefined && Date.now() - made.mtimeMs > AGE_MS_MAX;
}

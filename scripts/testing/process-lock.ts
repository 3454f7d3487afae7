/**
 * A lock between processes of this machine, which the end of its holder frees. Processes that find an ended holder in
 * the same moment may get it together, so it only saves work that may be done twice.
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

/** Takes the lock unless a process holds it that lives. */
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
    // EPERM: it lives, and belongs to another user.
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

async function isOld(path: string): Promise<boolean> {
  const made = await lstat(path).catch(() => undefined);
  return made !== undefined && Date.now() - made.mtimeMs > AGE_MS_MAX;
}

/** Unique user ids for the processes of each app, if this process may change users. */
import { execFile } from "node:child_process";
import { stat } from "node:fs/promises";
import { dirname } from "node:path";
import { promisify } from "node:util";
import { fnv1a32 } from "../../../../schemas/subjects.ts";

/**
 * The first user id for apps. It is above the ids of people, services, container ranges and systemd's dynamic users.
 */
const FIRST = 1_900_000_000;
const COUNT = 100_000_000;

export class AppUsers {
  /** False if child processes must run as the same user as this process. */
  readonly #isPossible: boolean;
  readonly #taken = new Map<number, string>();

  constructor({ isPossible }: { isPossible: boolean }) {
    this.#isPossible = isPossible;
  }

  /**
   * Returns a user id for the app. It is the same on every host, unless another app on this host has the same id by
   * chance.
   */
  take(app: string): number | undefined {
    if (!this.#isPossible) return undefined;
    for (let id = FIRST + (fnv1a32(app) % COUNT); ; id++) {
      const owner = this.#taken.get(id);
      if (owner !== undefined && owner !== app) continue;
      this.#taken.set(id, app);
      return id;
    }
  }

  /** Releases the id when the app has no process left. */
  release(app: string): void {
    for (const [id, owner] of this.#taken) if (owner === app) this.#taken.delete(id);
  }
}

/** Returns the reason why apps cannot run as separate users; undefined if they can. */
export async function whyOneUser(programs: readonly string[]): Promise<string | undefined> {
  if (process.getuid?.() !== 0) return "this process is not root";
  // Root in a container may lack the permission or the range of ids.
  const refusal = await refusalOf(FIRST);
  if (refusal !== undefined) return `it may not start processes of other users (${refusal})`;
  for (const program of programs) {
    for (let path = program; path !== dirname(path); path = dirname(path)) {
      const { mode } = await stat(path);
      if ((mode & OPEN_TO_OTHERS) === 0) return `${path} is closed to other users`;
    }
  }
  return undefined;
}

/** Starts a process as this user. Returns the system's error code, or undefined if the process started. */
async function refusalOf(user: number): Promise<string | undefined> {
  try {
    await promisify(execFile)(process.execPath, ["--version"], { uid: user, gid: user });
    return undefined;
  } catch (error) {
    const { syscall, code } = error as NodeJS.ErrnoException;
    // EACCES only means that this user may not read the program. The caller then names the folder that is closed.
    return syscall === "spawn" && code !== "EACCES" ? code : undefined;
  }
}

/** The permission bits that let others read a file or pass through a folder. */
const OPEN_TO_OTHERS = 0o005;

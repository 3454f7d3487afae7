/** The file that stores a login; only its owner can read it. Writers hold a lock of the operating system. */
import { chmod, mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as pause } from "node:timers/promises";
import { z } from "zod";
import { Id } from "../../schemas/values.ts";
import { CommandFailure } from "./command.ts";

/** Timeout for the lock. A refresh takes up to REFRESH_MS_MAX, and several commands may wait one after another. */
const LOCK_MS_MAX = 60_000;
const LOCK_LOOK_MS = 20;
const SQLITE_BUSY = 5;

export const Login = z.object({
  api_url: z.url(),
  email: z.string(),
  account_id: Id,
  access_token: z.string(),
  refresh_token: z.string(),
  /** Expiry of the access token. */
  expires_at: z.iso.datetime(),
  token_endpoint: z.url(),
  revocation_endpoint: z.url(),
});
export type Login = z.infer<typeof Login>;

export function loginFolder(environment: NodeJS.ProcessEnv): string {
  const { XDG_CONFIG_HOME: named, HOME: home = homedir() } = environment;
  // The XDG Base Directory Specification says that a relative path must be ignored.
  const folder = named?.startsWith("/") ? named : join(home, ".config");
  return join(folder, "trunkline");
}

const fileIn = (folder: string) => join(folder, "login.json");

/** Reads the stored login. Returns undefined if nobody is logged in. */
export async function readLogin(folder: string): Promise<Login | undefined> {
  const path = fileIn(folder);
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
  try {
    return Login.parse(JSON.parse(text));
  } catch (error) {
    const remedy = "log in again: trunkline login";
    throw new CommandFailure(`Cannot read ${path}: it holds no login; ${remedy}`, { cause: error });
  }
}

/**
 * Writes the login, and resolves only when it is on disk: the server may have revoked the former refresh token
 * already. The caller must hold the lock.
 */
export async function writeLogin(folder: string, login: Login): Promise<void> {
  const path = fileIn(folder);
  const next = `${path}.next`;
  {
    await using file = await open(next, "w", 0o600);
    await file.chmod(0o600);
    await file.writeFile(`${JSON.stringify(login, undefined, 2)}\n`);
    await file.sync();
  }
  await rename(next, path);
  await using directory = await open(folder, "r");
  await directory.sync();
}

/** Deletes the stored login. The caller must hold the lock. */
export async function removeLogin(folder: string): Promise<void> {
  await rm(fileIn(folder), { force: true });
}

/**
 * Runs the function while this process holds the lock. Uses SQLite, because this is Node's only access to a lock of
 * the operating system, which is released even if the process is killed.
 */
export async function withLoginLock<T>(folder: string, run: () => Promise<T>): Promise<T> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await chmod(folder, 0o700);
  const database = new DatabaseSync(join(folder, "login.lock"), { timeout: 0 });
  const giveUpAt = performance.now() + LOCK_MS_MAX;
  try {
    while (!tryLock(database)) {
      if (performance.now() > giveUpAt) {
        throw new CommandFailure(`Cannot lock ${folder}: another command has held it for a minute`);
      }
      await pause(LOCK_LOOK_MS);
    }
    return await run();
  } finally {
    database.close();
  }
}

function tryLock(database: DatabaseSync): boolean {
  try {
    database.exec("BEGIN EXCLUSIVE");
    return true;
  } catch (error) {
    if (error instanceof Error && "errcode" in error && error.errcode === SQLITE_BUSY) return false;
    throw error;
  }
}

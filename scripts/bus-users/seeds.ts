/**
 * A folder with the NKey seed of each user of the bus, one file for each user: `actors.nk` is the seed of the role
 * actors.
 */
import { randomUUID } from "node:crypto";
import { link, mkdir, open, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { nkeys } from "@nats-io/transport-node";
import { busPublicKey } from "../../actors/runtime/bus/bus-key.ts";
import { BUS_USERS, type BusUserName } from "./users.ts";

/** A seed of a user: `SU`, and 56 characters of base32. */
const SEED = /^SU[A-Z2-7]{56}$/;

export const seedFile = (folder: string, name: BusUserName) => join(folder, `${name}.nk`);

/** The public key of each user. The server identifies users by these keys. */
export type PublicKeys = Readonly<Record<BusUserName, string>>;

/**
 * Creates the missing seeds of the folder and keeps existing seeds. Only the owner can read new files. Returns the
 * names of the new seeds and all public keys. If a file contains no valid seed, rejects with an error that names the
 * file.
 */
export async function makeSeeds(
  folder: string,
): Promise<{ made: BusUserName[]; publicKeys: PublicKeys }> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const present = new Set(await readdir(folder));
  const made = BUS_USERS.filter((name) => !present.has(`${name}.nk`));
  for (const name of made) {
    const seed = new TextDecoder().decode(nkeys.createUser().getSeed());
    await writeWhole(seedFile(folder, name), `${seed}\n`);
  }
  if (made.length > 0) await syncFolder(folder);
  const keys = await Promise.all(
    BUS_USERS.map(async (name) => [name, busPublicKey(await readSeed(seedFile(folder, name)))]),
  );
  return { made, publicKeys: Object.fromEntries(keys) };
}

/**
 * Creates a file atomically: after a crash or power cut, it is complete or does not exist. Rejects if the file exists
 * already.
 */
async function writeWhole(path: string, text: string): Promise<void> {
  const unfinished = `${path}.${randomUUID()}.unfinished`;
  try {
    await using file = await open(unfinished, "wx", 0o600);
    await file.writeFile(text);
    await file.sync();
    // Uses `link`, because `rename` would replace a seed that another process has just created.
    await link(unfinished, path);
  } finally {
    await rm(unfinished, { force: true });
  }
}

/** Syncs the folder, because otherwise a power cut could lose a new file's name. */
async function syncFolder(path: string): Promise<void> {
  await using folder = await open(path, "r");
  await folder.sync();
}

/** Reads a seed. The error names the file and the expected format, and never shows the file's content. */
export async function readSeed(path: string): Promise<string> {
  let text: string;
  try {
    text = (await readFile(path, "utf8")).trim();
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? cause.code : cause;
    throw new Error(`Cannot read the NKey seed "${path}": ${code}`, { cause });
  }
  if (SEED.test(text)) return text;
  throw new Error(`Cannot read the NKey seed "${path}": expected a line that begins with SU`);
}

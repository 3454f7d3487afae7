/** A folder with the NKey seed of each user of the bus, in a file of its own: `actors.nk` is that of the role actors. */
import { randomUUID } from "node:crypto";
import { link, mkdir, open, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { nkeys } from "@nats-io/transport-node";
import { BUS_USERS, type BusUserName } from "./permissions.ts";

/** A seed of a user: `SU`, and 56 characters of base32. */
const SEED = /^SU[A-Z2-7]{56}$/;

export const seedFile = (folder: string, name: BusUserName) => join(folder, `${name}.nk`);

/** The public keys by user; the server knows users by these. */
export type PublicKeys = Readonly<Record<BusUserName, string>>;

/**
 * Creates the missing seeds of the folder, readable only by their owner, and keeps the others. Returns the names of the
 * new seeds and all public keys. If a file holds no seed, rejects with an error that names the file.
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
    BUS_USERS.map(async (name) => [name, publicKeyOf(await readSeed(seedFile(folder, name)))]),
  );
  return { made, publicKeys: Object.fromEntries(keys) };
}

/** Makes a file that is there whole or not at all, also after a power cut. Rejects where it is there already. */
async function writeWhole(path: string, text: string): Promise<void> {
  const unfinished = `${path}.${randomUUID()}.unfinished`;
  try {
    await using file = await open(unfinished, "wx", 0o600);
    await file.writeFile(text);
    await file.sync();
    // A rename would replace the seed that another process has just made.
    await link(unfinished, path);
  } finally {
    await rm(unfinished, { force: true });
  }
}

/** A new name in a folder survives a power cut only if the folder is synced too. */
async function syncFolder(path: string): Promise<void> {
  await using folder = await open(path, "r");
  await folder.sync();
}

/** Reads a seed. The error names the file and what it should be, and never what it holds. */
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

const publicKeyOf = (seed: string) => nkeys.fromSeed(new TextEncoder().encode(seed)).getPublicKey();

/** A folder with one NKey seed file for each user of the bus: `actors.nk` belongs to the role `actors`. */
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
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
    await writeFile(seedFile(folder, name), `${seed}\n`, { mode: 0o600, flag: "wx" });
  }
  const keys = await Promise.all(
    BUS_USERS.map(async (name) => [name, publicKeyOf(await readSeed(seedFile(folder, name)))]),
  );
  return { made, publicKeys: Object.fromEntries(keys) };
}

/** Reads a seed. The error names the file and the expected content, and never the actual content. */
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

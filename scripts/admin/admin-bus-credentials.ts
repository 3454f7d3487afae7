/**
 * `trunkline admin bus-credentials <folder>`: creates a bus user for each role, and the configuration of these users
 * for nats-server.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { makeSeeds, seedFile } from "../bus-users/seeds.ts";
import { SERVER_PART, serverPart } from "../bus-users/server-part.ts";
import { BUS_USERS } from "../bus-users/users.ts";
import { REPOSITORY } from "../tools.ts";
import { UsageError } from "./usage-error.ts";

/**
 * The first line of a configuration file that this command wrote. The command replaces only a file that begins with
 * this line.
 */
const OURS = "# The users of the bus and their permissions.";

/**
 * Creates the missing files of the folder and keeps existing seeds. Always writes the servers' configuration of the
 * users, because each version has its own permissions. Prints the outcome for each file.
 */
export async function adminBusCredentials(
  [name, ...surplus]: readonly string[],
  _environment: NodeJS.ProcessEnv,
): Promise<void> {
  if (name === undefined || surplus.length > 0) {
    throw new UsageError('Cannot run "admin bus-credentials": expected a folder after it');
  }
  const folder = resolve(name);
  const part = join(folder, SERVER_PART);
  const before = await readIfThere(part);
  if (before !== undefined && !before.startsWith(OURS)) {
    throw new Error(`Cannot replace ${part}: this command did not make it; move it away`);
  }
  const { made, publicKeys } = await makeSeeds(folder);
  for (const user of BUS_USERS) {
    console.log(`${made.includes(user) ? "made" : "kept"}      ${seedFile(folder, user)}`);
  }
  const text = serverPart(publicKeys);
  if (text !== before) await writeFile(part, text);
  const became = before === undefined ? "made" : text === before ? "unchanged" : "replaced";
  console.log(`${became.padEnd(9)} ${part}`);
  console.log(`
Give each server ${SERVER_PART}, in one folder with nats-base.conf and nats-secure.conf of
${join(REPOSITORY, "deploy")}. A running server loads it after: nats-server --signal reload=<pid>
Give each process the seed of its role alone: TRUNKLINE_NATS_NKEYS=<path of the seed>.`);
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}

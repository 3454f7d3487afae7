/** The access of a process's roles to the bus: servers, certificates, and the user of each role. */
import { stat } from "node:fs/promises";
import { basename, join } from "node:path";
import type { BusOptions } from "../../actors/runtime/bus/bus.ts";
import { BUS_USERS, type BusUserName } from "./permissions.ts";
import { readSeed } from "./seeds.ts";

/** Options of `Bus.connect` that do not depend on the use of the connection. */
export type BusLogin = Omit<BusOptions, "name" | "listeners">;

/** Returns the login of a role, or of a person. */
export type BusAccess = (name: BusUserName) => BusLogin;

/**
 * Reads the seeds of these users. `path` is a folder with a seed for each user, or the file of one seed. Rejects with
 * one line that names the setting.
 */
export async function nkeyAccess(
  login: Pick<BusLogin, "url" | "tls">,
  path: string,
  names: readonly BusUserName[],
): Promise<BusAccess> {
  const isFolder = await stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
  const seeds = new Map<BusUserName, string>();
  for (const name of names) {
    const file = isFolder ? join(path, `${name}.nk`) : path;
    const seed = await readSeed(file).catch((cause: Error) => {
      throw new Error(`TRUNKLINE_NATS_NKEYS: ${cause.message}`, { cause });
    });
    seeds.set(name, seed);
  }
  return (name) => {
    const nkey = seeds.get(name);
    if (nkey === undefined) throw new Error(`Cannot reach the bus as ${name}: no seed was read`);
    return { ...login, nkey, role: isFolder ? name : (userOfFile(path) ?? name) };
  };
}

/** Finds the user of a seed by its file name: `operator.nk` belongs to the operator. */
function userOfFile(path: string): BusUserName | undefined {
  return BUS_USERS.find((name) => basename(path) === `${name}.nk`);
}

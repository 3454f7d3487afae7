/** The access of a process's roles to the bus: servers, certificates, and the user of each role. */
import { stat } from "node:fs/promises";
import { basename, join } from "node:path";
import type { BusOptions } from "../../actors/runtime/bus/bus.ts";
import { BUS_USERS, type BusUserName } from "./permissions.ts";
import { readSeed } from "./seeds.ts";

/** The users that are roles of processes. */
const ROLES: ReadonlySet<BusUserName> = new Set(["gateway", "actors", "browser"]);

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
  const ofFile = isFolder ? undefined : userOfFile(path);
  if (ofFile !== undefined) refuseOtherUsers(path, ofFile, names);
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
    return { ...login, nkey, role: ofFile ?? name };
  };
}

/** A role with the user of another one starts, and then the bus refuses its requests one by one. */
function refuseOtherUsers(path: string, user: BusUserName, names: readonly BusUserName[]): void {
  const other = names.find((name) => name !== user && ROLES.has(name));
  // The user admin may do all that a role does, and commands of people say themselves what their user may not do.
  if (other === undefined || user === "admin") return;
  throw new Error(
    `TRUNKLINE_NATS_NKEYS: expected ${other}.nk for the role ${other}, or a folder with the seeds of ${names.join(", ")}, found "${path}"`,
  );
}

/** Finds the user of a seed by the name of its file: `operator.nk` is that of the operator. */
function userOfFile(path: string): BusUserName | undefined {
  return BUS_USERS.find((name) => basename(path) === `${name}.nk`);
}

/** How the roles of a process connect to the bus: the servers, the certificates, and the bus user of each role. */
import { stat } from "node:fs/promises";
import { basename, join } from "node:path";
import type { BusOptions } from "../../actors/runtime/bus/bus.ts";
import { readSeed } from "./seeds.ts";
import { BUS_USERS, type BusUserName } from "./users.ts";

/** Users of the bus that belong to roles of processes. The other users are for people. */
const ROLES: ReadonlySet<BusUserName> = new Set(["gateway", "actors", "browser"]);

/** Options of `Bus.connect` that do not depend on the use of the connection. */
export type BusLogin = Omit<BusOptions, "name" | "listeners">;

/** Returns the login of a role, or of a person. */
export type BusAccess = (name: BusUserName) => BusLogin;

/**
 * Reads the seeds of these users. `path` is a folder with one seed for each user, or the file of one seed. Rejects
 * with a one-line error that names the setting.
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

/**
 * Throws if a seed belongs to another role. A role with the wrong user would start, and then the bus would refuse its
 * requests one by one.
 */
function refuseOtherUsers(path: string, user: BusUserName, names: readonly BusUserName[]): void {
  const other = names.find((name) => name !== user && ROLES.has(name));
  // The user admin has all permissions of the roles. For commands of people, the bus's refusal is the error message.
  if (other === undefined || user === "admin") return;
  throw new Error(
    `TRUNKLINE_NATS_NKEYS: expected ${other}.nk for the role ${other}, or a folder with the seeds of ${names.join(", ")}, found "${path}"`,
  );
}

/** Derives the user of a seed from the file name: `operator.nk` is the seed of the user operator. */
function userOfFile(path: string): BusUserName | undefined {
  return BUS_USERS.find((name) => basename(path) === `${name}.nk`);
}

/**
 * Finds the bus for an operator's command: the configured outside servers, or the embedded server of the data folder.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type BusLogin, nkeyAccess } from "../bus-users/bus-access.ts";
import { outsideAccess } from "../bus-users/outside-access.ts";
import type { BusUserName } from "../bus-users/users.ts";
import { type Config, configFromEnvironment } from "../config.ts";
import { BUS_FOLDER } from "../embedded-nats.ts";
import type { Role } from "../settings.ts";

/**
 * Returns the address and login of the bus. If the setting names a folder of seeds, the command connects as `user`.
 */
export async function busOf(
  environment: NodeJS.ProcessEnv,
  user: BusUserName = "admin",
): Promise<BusLogin> {
  const { natsUrl, dataDir, ...config } = configFromEnvironment(environment);
  if (natsUrl !== undefined) return (await outsideAccess(config, natsUrl, [user]))(user);
  return { url: await embeddedUrl(dataDir) };
}

/** Returns the bus logins of the roles of a process: a login for each role, or one login for all roles. */
export async function roleLogins(
  config: Config,
): Promise<{ roles: readonly Role[]; login: BusLogin }[]> {
  const { natsUrl, natsNkeys, dataDir, roles } = config;
  const access =
    natsUrl === undefined
      ? await nkeyAccess({ url: await embeddedUrl(dataDir) }, join(dataDir, BUS_FOLDER), roles)
      : await outsideAccess(config, natsUrl, roles);
  const [first] = roles;
  if (first === undefined) return [];
  const login = access(first);
  const hasOne = natsUrl !== undefined && (natsNkeys === undefined || login.role === "admin");
  if (hasOne) return [{ roles, login }];
  return roles.map((role) => ({ roles: [role], login: access(role) }));
}

async function embeddedUrl(dataDir: string): Promise<string> {
  const file = join(dataDir, "nats.url");
  try {
    return (await readFile(file, "utf8")).trim();
  } catch (cause) {
    const expected =
      "set TRUNKLINE_NATS_URL, or TRUNKLINE_DATA to the folder of a running Trunkline";
    throw new Error(`Cannot find the bus: ${file} cannot be read; ${expected}`, { cause });
  }
}

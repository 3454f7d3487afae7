/** The permissions that the bindings and event rules of an app give to its code. */
import { PERMISSIONS, type Permission, permits } from "../../schemas/account/permissions.ts";
import type { AppConfig } from "../../schemas/apps/app-config.ts";
import { ActorError } from "../../schemas/errors.ts";

/** The permissions of each binding, as tokens have them. */
export const BINDING_PERMISSIONS = {
  artifacts: ["artifacts.write"],
  browser: ["browser-rendering.write"],
} as const satisfies Record<string, readonly Permission[]>;

/**
 * Refuses to deploy code that may do more than its deployer. Otherwise an OAuth client that may deploy apps could write
 * to repositories that its person has not opened to it.
 */
export function checkMayBind(held: readonly Permission[], config: AppConfig): void {
  const needed = neededBy(config).find((permission) => !permits(held, permission));
  if (needed === undefined) return;
  const reason = `its bindings or events need "${PERMISSIONS[needed]}", which the token lacks`;
  throw new ActorError("forbidden", `Cannot deploy app "${config.name}": ${reason}`);
}

function neededBy({ artifacts, browser, events }: AppConfig): Permission[] {
  return [
    ...(artifacts.length > 0 ? BINDING_PERMISSIONS.artifacts : []),
    ...(browser ? BINDING_PERMISSIONS.browser : []),
    ...(events.length > 0 ? (["artifacts.read"] as const) : []),
  ];
}

/** What a token may open: one list for permission groups of API tokens and scopes of OAuth access tokens. */
import { z } from "zod";

/** Id → the name people see. */
export const PERMISSIONS = {
  "browser-rendering.read": "Browser Rendering Read",
  "browser-rendering.write": "Browser Rendering Write",
  "artifacts.read": "Artifacts Read",
  "artifacts.write": "Artifacts Write",
  "oauth-clients.read": "OAuth Clients Read",
  "oauth-clients.write": "OAuth Clients Write",
  "apps.read": "Apps Read",
  "apps.write": "Apps Write",
  "account.read": "Account Settings Read",
  "account.write": "Account Settings Write",
} as const;

export type Permission = keyof typeof PERMISSIONS;

export const ALL_PERMISSIONS = Object.keys(PERMISSIONS) as Permission[];

export const Permission = z.enum(ALL_PERMISSIONS);

/** Whether a token with `held` may do what needs `needed`: to write includes to read. */
export function permits(held: readonly Permission[], needed: Permission): boolean {
  const writing = needed.replace(/\.read$/, ".write");
  return held.some((permission) => permission === needed || permission === writing);
}

/** The permissions, in one list for the permission groups of API tokens and the scopes of OAuth access tokens. */
import { z } from "zod";

/** The permissions: each id with the name that people see. */
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

/**
 * The permissions of each role in an account. A member with several roles has the permissions of all of them. Only a
 * Super Administrator can give this role or change a member who has it.
 */
export const ROLES = {
  "Super Administrator": {
    description: "May do everything, including changes to other Super Administrators",
    permissions: ALL_PERMISSIONS,
  },
  Administrator: {
    description: "May do everything except change Super Administrators",
    permissions: ALL_PERMISSIONS,
  },
  "OAuth Client Write": {
    description: "May create, change and delete OAuth clients",
    permissions: ["oauth-clients.write"],
  },
  Member: {
    description: "May read everything and change nothing",
    permissions: ALL_PERMISSIONS.filter((permission) => permission.endsWith(".read")),
  },
} as const satisfies Record<string, { description: string; permissions: readonly Permission[] }>;

export type Role = keyof typeof ROLES;

export const ALL_ROLES = Object.keys(ROLES) as Role[];

export const Role = z.enum(ALL_ROLES);

/** The role that only a member with this role can give or remove. An account always has at least one such member. */
export const HIGHEST_ROLE: Role = "Super Administrator";

/** Returns the combined permissions of these roles. */
export function permissionsOf(roles: readonly Role[]): Permission[] {
  const held = new Set(roles.flatMap((role): readonly Permission[] => ROLES[role].permissions));
  return ALL_PERMISSIONS.filter((permission) => held.has(permission));
}

/** Returns whether `held` includes `needed`. A write permission includes its read permission. */
export function permits(held: readonly Permission[], needed: Permission): boolean {
  const writing = needed.replace(/\.read$/, ".write");
  return held.some((permission) => permission === needed || permission === writing);
}

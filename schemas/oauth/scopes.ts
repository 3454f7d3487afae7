/** The scopes of OAuth clients: the permissions of API tokens, and identity scopes. */
import { z } from "zod";
import { ALL_PERMISSIONS, PERMISSIONS, type Permission } from "../account/permissions.ts";

/** Scopes that give no access to an account. */
const IDENTITY_SCOPES = ["openid", "email", "offline_access"] as const;
/**
 * Scopes that a person cannot decline individually. `openid` turns the request into an OpenID Connect request, and
 * `offline_access` requests refresh tokens.
 */
export const NEVER_OPTIONAL: readonly Scope[] = ["openid", "offline_access"];

export type Scope = Permission | (typeof IDENTITY_SCOPES)[number];

export const ALL_SCOPES: readonly Scope[] = [...ALL_PERMISSIONS, ...IDENTITY_SCOPES];

export const Scope = z.enum(ALL_SCOPES);

/** The text of each scope on the consent page, by the scope's id. */
export const SCOPES: Record<Scope, { name: string; category: string; description: string }> = {
  "browser-rendering.read": permission(
    "browser-rendering.read",
    "Browser Rendering",
    "See crawls, their results and usage",
  ),
  "browser-rendering.write": permission(
    "browser-rendering.write",
    "Browser Rendering",
    "Render pages and crawl sites",
  ),
  "artifacts.read": permission(
    "artifacts.read",
    "Artifacts",
    "See repositories and what is in them",
  ),
  "artifacts.write": permission(
    "artifacts.write",
    "Artifacts",
    "Make, change and delete repositories",
  ),
  "oauth-clients.read": permission("oauth-clients.read", "OAuth Clients", "See OAuth clients"),
  "oauth-clients.write": permission(
    "oauth-clients.write",
    "OAuth Clients",
    "Make, change and delete OAuth clients",
  ),
  "apps.read": permission("apps.read", "Apps", "See apps, their logs and deliveries"),
  "apps.write": permission("apps.write", "Apps", "Deploy, change and delete apps"),
  "account.read": permission(
    "account.read",
    "Account",
    "See members, tokens and usage of the account",
  ),
  "account.write": permission(
    "account.write",
    "Account",
    "Invite and remove members, make and revoke tokens",
  ),
  openid: identity("OpenID", "Know which user you are"),
  email: identity("E-mail address", "See your e-mail address"),
  offline_access: identity("Offline access", "Keep its access while you are away"),
};

export const isIdentityScope = (scope: string): boolean =>
  IDENTITY_SCOPES.some((identity) => identity === scope);

function permission(id: Permission, category: string, description: string) {
  return { name: PERMISSIONS[id], category, description };
}

function identity(name: string, description: string) {
  return { name, category: "Identity", description };
}

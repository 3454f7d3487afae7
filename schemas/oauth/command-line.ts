/**
 * The OAuth client of the command line. It is built into every platform, so that signing in needs no registration.
 */
import type { Scope } from "./scopes.ts";

/** A fixed id that no registered client can have: registered clients get 16 random bytes. */
export const COMMAND_LINE_CLIENT_ID = "7472756e6b6c696e65636f6d6d616e64";

/** The command line may use any free port (RFC 8252 section 7.3). */
export const COMMAND_LINE_CALLBACK = "http://127.0.0.1/callback";

export const COMMAND_LINE_SCOPES: readonly Scope[] = [
  "openid",
  "email",
  "offline_access",
  "account.read",
  "account.write",
  "apps.read",
  "apps.write",
  "artifacts.read",
  "artifacts.write",
  "browser-rendering.read",
  "browser-rendering.write",
  "oauth-clients.read",
  "oauth-clients.write",
];

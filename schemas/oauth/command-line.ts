/** The command line as an OAuth client: known to every platform by itself, so that signing in needs no registration. */
import type { Scope } from "./scopes.ts";

/** Not random, and so nobody's: clients that are registered get 16 random bytes. */
export const COMMAND_LINE_CLIENT_ID = "7472756e6b6c696e65636f6d6d616e64";

/** RFC 8252 section 7.3: at whatever port is free. */
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

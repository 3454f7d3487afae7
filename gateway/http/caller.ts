/**
 * The caller of a request and its access rights. A caller is an API token, an OAuth access token or a signed-in
 * person.
 */
import type { Permission } from "../../schemas/account/permissions.ts";
import type { Scope } from "../../schemas/oauth/scopes.ts";

export interface Caller {
  accountId: string;
  /** The id of the API token, of the OAuth access token's grant, or of the person's session. */
  tokenId: string;
  permissions: readonly Permission[];
  /** The scopes of an OAuth access token that its client still has. */
  scopes?: readonly Scope[];
  notBeforeAt?: number | undefined;
  expiresAt?: number | undefined;
  /** The session of a person who uses the platform's own pages. */
  session?: { id: string; email: string };
  /** The signed-in person; or the user of the grant from which the token comes. */
  userId?: string;
  clientId?: string;
  /** The grant from which the token comes, directly or through the token that created it. */
  grantId?: string | undefined;
  /** All accounts that an OAuth access token gives access to. */
  accountIds?: readonly string[];
  /** The name of the app whose code is the caller. */
  app?: string;
  /** The only repository namespace that this caller may use, if the caller is the binding of an app. */
  namespace?: string;
}

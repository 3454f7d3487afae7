/** The caller of a request: an API token or an OAuth access token, and its permissions. */
import type { Permission } from "../../schemas/account/permissions.ts";
import type { Scope } from "../../schemas/oauth/scopes.ts";

export interface Caller {
  accountId: string;
  /** The id of the API token, or of the OAuth access token's grant. */
  tokenId: string;
  permissions: readonly Permission[];
  /** The scopes of an OAuth access token that its client still has. */
  scopes?: readonly Scope[];
  notBeforeAt?: number | undefined;
  expiresAt?: number | undefined;
  /** The person and the client of the grant that the token rests on. */
  userId?: string;
  clientId?: string;
  /** The grant that the token rests on, itself or through the token that made it. */
  grantId?: string | undefined;
  /** Every account that an OAuth access token opens. */
  accountIds?: readonly string[];
  /** The only namespace of repositories that the binding of an app opens. */
  namespace?: string;
  /** Checks the token again, for connections that outlive their request. */
  isStillGood?: () => Promise<boolean>;
}

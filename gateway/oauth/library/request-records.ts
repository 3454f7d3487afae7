/**
 * Holds the records that one request to oidc-provider has read, and the records that it will write in one message:
 * see token-store.ts.
 */
import type { z } from "zod";
import type { PendingLogout } from "../../../schemas/account/session.ts";
import type {
  Consent,
  GrantEntry,
  GrantToken,
  oauthGrant,
} from "../../../schemas/oauth/oauth-grant.ts";
import type { Attempt } from "../../account/failed-authentications.ts";
import type { ClientMetadata } from "../clients/live-client.ts";
import type { TokenAddress } from "../tokens/token-text.ts";

export type FoundToken = z.output<(typeof oauthGrant.messages.find)["reply"]>;

/** A grant that will be stored together with its code. */
type NewGrant = Pick<GrantEntry, keyof Consent>;

class RequestRecords {
  readonly clients = new Map<string, Promise<ClientMetadata | undefined>>();
  readonly grants = new Map<string, GrantEntry>();
  /** Lookups of tokens that this request has started, by the hash of the token. */
  readonly tokens = new Map<string, Promise<FoundToken | undefined>>();
  readonly newGrants = new Map<string, NewGrant>();
  /** The request's attempt to authenticate, as the limit on guesses counts it: see throttle.ts. */
  attempt: Promise<Attempt> | undefined;
  /** E-mail address of the signed-in user. */
  email: string | undefined;
  /** The pending sign-out that the session's actor stores. */
  logout: PendingLogout | undefined;
  /** The code or refresh token that this request exchanges for new tokens. It cannot be used again. */
  using: TokenAddress | undefined;
  /** The new tokens. They wait here until all of them exist, and then one message stores them. */
  access: GrantToken | undefined;
  refresh: GrantToken | undefined;
}

const records = new WeakMap<object, RequestRecords>();

/** Returns the records of the current request. Outside a request the records are new and empty. */
export function recordsOf(context: object | undefined): RequestRecords {
  if (!context) return new RequestRecords();
  const known = records.get(context) ?? new RequestRecords();
  records.set(context, known);
  return known;
}

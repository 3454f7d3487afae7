/** Limits the tokens of repositories that a caller makes, so that none opens a repository longer than the caller may. */
import { REPO_TOKEN_TTL_S, REPO_TOKEN_TTL_S_MIN } from "../../../schemas/repositories/limits.ts";
import type { Caller } from "../../http/caller.ts";
import type { TokenBounds } from "../repo-tokens.ts";

/**
 * Returns the bounds of a token with the requested lifetime. It ends with the caller's own API token, or with the OAuth
 * grant that the caller's token comes from. The end of an OAuth access token is no bound by itself: a client that refreshes it keeps
 * its grant, and the grant of a client without refresh tokens ends with it.
 */
export function tokenBounds(
  { grantId, scopes, expiresAt = Number.POSITIVE_INFINITY }: Caller,
  now: number,
  ttlS = REPO_TOKEN_TTL_S,
): TokenBounds {
  const leftS = scopes === undefined ? Math.floor((expiresAt - now) / 1_000) : ttlS;
  return {
    ttlS: Math.max(REPO_TOKEN_TTL_S_MIN, Math.min(ttlS, leftS)),
    ...(grantId !== undefined && { grantId }),
  };
}

/** The tokens of a grant: found by their hashes, added, and forgotten when their time is over. */
import type { DeepReadonly } from "../../../schemas/contract.ts";
import { REFRESH_GRACE_MS } from "../../../schemas/oauth/limits.ts";
import type { GrantToken } from "../../../schemas/oauth/oauth-grant.ts";
import type { OpenGrant } from "./oauth-grant-state.ts";

/**
 * Valid access tokens of one grant; past it the oldest is revoked. Allows 64 processes to refresh at once, and then
 * once more.
 */
export const ACCESS_TOKENS_PER_GRANT_MAX = 160;
/**
 * Refresh tokens of one grant: unused ones, of which only retries make more than one, and used ones within the grace
 * period. Past it the oldest unused token is revoked.
 */
export const REFRESH_TOKENS_PER_GRANT_MAX = 160;
/** Bytes of the records of one kind of token. The records of both kinds fit into STATE_BYTES_MAX. */
export const TOKEN_RECORDS_BYTES_MAX = 250_000;
/** Used refresh tokens that the grant remembers to detect replay: one an hour for 30 days. */
export const USED_REFRESH_TOKENS_MAX = 750;

type Open = DeepReadonly<OpenGrant>;
type Token = DeepReadonly<GrantToken>;
/** A token, with the time of its use if it can be used only once. */
export type UsableToken = Token & { readonly usedAt?: number | undefined };

/** Half a SHA-256 (128 bits) is enough: an attacker cannot find a token for it either. */
const REMEMBERED_CHARS = 32;

export const isLive = ({ expiresAt }: { expiresAt: number }, now: number) => now < expiresAt;

/** Returns whether a refresh token was used longer ago than the grace period. */
export const isSpent = ({ usedAt }: { usedAt?: number | undefined }, now: number) =>
  usedAt !== undefined && now - usedAt >= REFRESH_GRACE_MS;

export const wasUsed = (state: Open, hash: string) =>
  state.usedRefresh.includes(hash.slice(0, REMEMBERED_CHARS));

/** The state with new tokens and without those whose time is over. */
export function withTokens(
  state: Open,
  { access, refresh }: { access: Token; refresh?: Token | undefined },
  now: number,
): Open {
  const accesses = [...state.access.filter((token) => isLive(token, now)), access];
  return {
    ...state,
    access: lastOf(accesses, ACCESS_TOKENS_PER_GRANT_MAX),
    ...withRefresh(state, refresh, now),
  };
}

function withRefresh(state: Open, refresh: Token | undefined, now: number) {
  const live = state.refresh.filter((token) => isLive(token, now));
  const served = live.filter((token) => !isSpent(token, now));
  const next: readonly UsableToken[] = refresh ? [refresh] : [];
  // Tokens in their grace period are dropped last. Without one, a concurrent refresh would look like a replay and end
  // the grant.
  const byWorth = [...served.filter(isUnused), ...served.filter((one) => !isUnused(one)), ...next];
  const worth = new Set(lastOf(byWorth, REFRESH_TOKENS_PER_GRANT_MAX));
  const kept = [...live, ...next].filter((token) => worth.has(token));
  // Using a dropped token that was never used is not a replay.
  const evicted = live.filter((token) => !worth.has(token) && !isUnused(token));
  const used = [
    ...state.usedRefresh,
    ...evicted.map(({ hash }) => hash.slice(0, REMEMBERED_CHARS)),
  ];
  return { refresh: kept, usedRefresh: used.slice(-USED_REFRESH_TOKENS_MAX) };
}

const isUnused = ({ usedAt }: UsableToken) => usedAt === undefined;

/** Returns the latest tokens that fit the limits of number and bytes. */
function lastOf<T extends Token>(tokens: readonly T[], countMax: number): T[] {
  let bytes = 0;
  const last = tokens.slice(-countMax);
  const first = last.findLastIndex(({ record }) => {
    bytes += Buffer.byteLength(JSON.stringify(record));
    return bytes > TOKEN_RECORDS_BYTES_MAX;
  });
  return last.slice(first + 1);
}

/** Returns when the last token expires, at most the end of the grant. */
export function endsAt(state: Open): number {
  const tokens = [state.code, ...state.access, ...state.refresh];
  const last = Math.max(...tokens.map(({ expiresAt }) => expiresAt));
  return Math.min(last, state.grant.expiresAt);
}

/**
 * The tokens of a grant: finds them by their hashes, adds tokens, and removes expired ones. Decides whether a used
 * refresh token may be used once more.
 */
import type { DeepReadonly } from "../../../schemas/contract.ts";
import { REFRESH_GRACE_MS } from "../../../schemas/oauth/limits.ts";
import type { GrantToken } from "../../../schemas/oauth/oauth-grant.ts";
import type { OpenGrant } from "./oauth-grant-state.ts";

/**
 * Limits the valid access tokens of one grant. Past the limit, the oldest is revoked. The limit allows 64 processes
 * to refresh at the same time, twice.
 */
export const ACCESS_TOKENS_PER_GRANT_MAX = 160;
/**
 * Limits the refresh tokens of one grant: unused tokens, and used tokens within the grace period. Only retries create
 * more than one unused token. Past the limit, the oldest unused token is revoked.
 */
export const REFRESH_TOKENS_PER_GRANT_MAX = 160;
/**
 * Limits the bytes of the records of one kind of token. The records of both kinds together fit into STATE_BYTES_MAX.
 */
export const TOKEN_RECORDS_BYTES_MAX = 250_000;
/**
 * Limits the used refresh tokens that the grant remembers to detect their reuse. The limit allows one refresh an hour
 * for 30 days.
 */
export const USED_REFRESH_TOKENS_MAX = 750;
/**
 * Limits the uses of a refresh token after its grace period. Each makes the grant remember one token more. Without a
 * limit, a thief could repeat them until the grant forgets the token that the thief replaced first.
 */
export const LATE_RETRIES_MAX = 5;

type Open = DeepReadonly<OpenGrant>;
type Token = DeepReadonly<GrantToken>;
/** A token. `usedAt` is the time of its first use; only codes and refresh tokens have it. */
export type UsableToken = Token & { readonly usedAt?: number | undefined };
type RefreshToken = Open["refresh"][number];

/**
 * The number of characters that a grant remembers of a used token's hash. Half a SHA-256 (128 bits) is enough: an
 * attacker cannot find another token with the same half.
 */
const REMEMBERED_CHARS = 32;

export const isLive = ({ expiresAt }: { expiresAt: number }, now: number) => now < expiresAt;

/** Returns whether a refresh token was used longer ago than the grace period. */
export const isSpent = ({ usedAt }: { usedAt?: number | undefined }, now: number) =>
  usedAt !== undefined && now - usedAt >= REFRESH_GRACE_MS;

const shortOf = ({ hash }: { hash: string }) => hash.slice(0, REMEMBERED_CHARS);

export const wasUsed = (state: Open, hash: string) => state.usedRefresh.includes(shortOf({ hash }));

const successorsOf = (state: Open, token: RefreshToken) =>
  state.refresh.filter(({ from }) => from === shortOf(token));

/**
 * Returns whether the use of this token, whose grace period is over, is a retry: no token that was issued for it has
 * appeared, so the client has probably not received the response.
 */
export function isRetriable(state: Open, token: RefreshToken): boolean {
  const { isConfirmed = false, retries = 0 } = token;
  return !isConfirmed && retries < LATE_RETRIES_MAX && successorsOf(state, token).length > 0;
}

/** Returns the state with the refresh token from which a used token came marked as confirmed. */
export function withConfirmed(state: Open, { from }: { from?: string | undefined }): Open {
  const source = state.refresh.find((one) => shortOf(one) === from);
  if (from === undefined || !source || source.isConfirmed) return state;
  const confirmed = { ...source, isConfirmed: true };
  return { ...state, refresh: state.refresh.map((one) => (one === source ? confirmed : one)) };
}

/** Returns the state after a refresh token was used. A retry after the grace period revokes the token's successors. */
export function withUse(state: Open, token: RefreshToken, now: number): Open {
  const isLate = isSpent(token, now);
  const successors = successorsOf(state, token);
  const dropped = isLate ? successors : [];
  // Successors that a limit has removed, or that an earlier version issued, may have been used.
  const isUnclear = token.usedAt !== undefined && successors.length === 0;
  const used = {
    ...token,
    usedAt: token.usedAt ?? now,
    ...(isLate && { retries: (token.retries ?? 0) + 1 }),
    ...(isUnclear && { isConfirmed: true }),
  };
  const next = {
    ...state,
    access: isLate ? state.access.filter(({ from }) => from !== shortOf(token)) : state.access,
    refresh: state.refresh
      .filter((one) => !dropped.includes(one))
      .map((one) => (one === token ? used : one)),
    usedRefresh: remembered([...state.usedRefresh, ...dropped.map(shortOf)]),
  };
  return withConfirmed(next, token);
}

const remembered = (hashes: readonly string[]) => hashes.slice(-USED_REFRESH_TOKENS_MAX);

/** Returns the state with the new tokens and without expired tokens. `source`: the hash of the used refresh token. */
export function withTokens(
  state: Open,
  { access, refresh }: { access: Token; refresh?: Token | undefined },
  { now, source }: { now: number; source?: string },
): Open {
  const origin = source === undefined ? {} : { from: shortOf({ hash: source }) };
  const accesses = [
    ...state.access.filter((token) => isLive(token, now)),
    { ...access, ...origin },
  ];
  return {
    ...state,
    access: lastOf(accesses, ACCESS_TOKENS_PER_GRANT_MAX),
    ...withRefresh(state, refresh && { ...refresh, ...origin }, now),
  };
}

function withRefresh(state: Open, refresh: RefreshToken | undefined, now: number) {
  const live = state.refresh.filter((token) => isLive(token, now));
  const served = live.filter((token) => !isSpent(token, now));
  const next: readonly RefreshToken[] = refresh ? [refresh] : [];
  const after = { ...state, refresh: [...live, ...next] };
  const retriable = live.filter((token) => isSpent(token, now) && isRetriable(after, token));
  // If there are too many tokens, used tokens in their grace period are dropped last. If one were dropped, a
  // concurrent refresh with it would look like a replay and end the grant.
  const byWorth = [
    ...retriable,
    ...served.filter(isUnused),
    ...served.filter((one) => !isUnused(one)),
    ...next,
  ];
  const worth = new Set(lastOf(byWorth, REFRESH_TOKENS_PER_GRANT_MAX));
  const kept = [...live, ...next].filter((token) => worth.has(token));
  // Only dropped tokens that were used are remembered: the use of a dropped token that was never used is no replay.
  const evicted = live.filter((token) => !worth.has(token) && !isUnused(token));
  const used = [...state.usedRefresh, ...evicted.map(shortOf)];
  return { refresh: kept, usedRefresh: remembered(used) };
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

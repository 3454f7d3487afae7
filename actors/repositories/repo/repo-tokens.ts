/** Makes, lists, revokes and verifies the tokens of a repository. */
import type { DeepReadonly } from "../../../schemas/contract.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { REPO_TOKENS_MAX } from "../../../schemas/repositories/limits.ts";
import {
  type RepoToken,
  type RepoTokenScope,
  repoTokenId,
} from "../../../schemas/repositories/repo.ts";
import { sameHash } from "../../account/lib/hashes/same-hash.ts";
import { type RepoRow, type RepoRows, rowsOf, tokenRow } from "./repo-state.ts";

/** The precision of a token's recorded last use. A more precise time would cost a write for each request. */
export const TOKEN_USED_MS = 60 * 60_000;

type TokenRow = Extract<RepoRow, { row: "token" }>;
type WrittenRows = Record<string, RepoRow | null>;

export interface NewToken {
  secretHash: string;
  scope: RepoTokenScope;
  ttlS: number;
  /** The OAuth grant that the token is made with. */
  grantId?: string | undefined;
}

/** Creates a token. At REPO_TOKENS_MAX, deletes the oldest expired or revoked token, or refuses if all are active. */
export function mintToken(
  rows: RepoRows,
  { secretHash, scope, ttlS, grantId }: NewToken,
  now: number,
): { token: RepoToken; written: WrittenRows } {
  const id = repoTokenId(secretHash);
  if (rows.has(tokenRow(id))) throw new ActorError("conflict", "Cannot mint token: it is known");
  const token = {
    id,
    scope,
    createdAt: now,
    expiresAt: now + ttlS * 1_000,
    revokedAt: null,
    lastUsedAt: null,
    ...(grantId !== undefined && { grantId }),
  };
  const written: WrittenRows = { [tokenRow(id)]: { ...token, row: "token", secretHash } };
  const known = Array.from(rowsOf(rows, "token"), ([, row]) => row);
  if (known.length >= REPO_TOKENS_MAX) {
    const [oldest] = known
      .filter((row) => tokenState(row, now) !== "active")
      .sort((one, other) => one.createdAt - other.createdAt);
    if (!oldest) {
      const text = `Cannot mint token: ${REPO_TOKENS_MAX} are active, which is the limit`;
      throw new ActorError("limit_reached", text);
    }
    written[tokenRow(oldest.id)] = null;
  }
  return { token, written };
}

/** Lists the tokens in one state, or all of them, the newest first. */
export function listTokens(
  rows: RepoRows,
  { state, offset, limit }: { state: string; offset: number; limit: number },
  now: number,
) {
  const tokens = Array.from(rowsOf(rows, "token"), ([, row]) => ({
    ...shown(row),
    state: tokenState(row, now),
  }))
    .filter((token) => state === "all" || token.state === state)
    .sort((one, other) => other.createdAt - one.createdAt || (one.id < other.id ? -1 : 1));
  return { tokens: tokens.slice(offset, offset + limit), total: tokens.length };
}

export function revokeToken(
  rows: RepoRows,
  id: string,
  now: number,
): { revoked: boolean; written?: WrittenRows } {
  const row = rows.get(tokenRow(id));
  if (row?.row !== "token") {
    throw new ActorError("not_found", `Cannot find token: "${id}" is unknown`);
  }
  if (row.revokedAt !== null) return { revoked: false };
  return { revoked: true, written: { [tokenRow(id)]: { ...row, revokedAt: now } } };
}

/**
 * Checks a token, and refuses it if it is unknown, revoked or expired. `written` records the last use, but only if no use
 * was recorded in the last TOKEN_USED_MS.
 */
export function verifyToken(
  rows: RepoRows,
  secretHash: string,
  now: number,
): { token: DeepReadonly<RepoToken>; written?: WrittenRows } {
  const row = rows.get(tokenRow(repoTokenId(secretHash)));
  // The error text is the same for every reason, so that an attacker learns nothing from it.
  if (
    row?.row !== "token" ||
    !sameHash(row.secretHash, secretHash) ||
    tokenState(row, now) !== "active"
  ) {
    throw new ActorError("forbidden", "Invalid or expired token");
  }
  const token = shown(row);
  if (row.lastUsedAt !== null && now - row.lastUsedAt < TOKEN_USED_MS) return { token };
  return { token, written: { [tokenRow(row.id)]: { ...row, lastUsedAt: now } } };
}

function tokenState({ revokedAt, expiresAt }: TokenRow, now: number) {
  if (revokedAt !== null) return "revoked" as const;
  return now < expiresAt ? ("active" as const) : ("expired" as const);
}

function shown({ row: _row, secretHash: _hash, ...token }: TokenRow): RepoToken {
  return token;
}

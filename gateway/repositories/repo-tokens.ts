/** Mints, lists and revokes the tokens of repositories. */
import { ActorError } from "../../schemas/errors.ts";
import { folded } from "../../schemas/repositories/git-names.ts";
import { REPO_TOKEN_TTL_S } from "../../schemas/repositories/limits.ts";
import {
  type RepoAddress,
  type RepoToken,
  type RepoTokenScope,
  repo,
  repoTokenId,
} from "../../schemas/repositories/repo.ts";
import { repoToken, repoTokenKey } from "../../schemas/repositories/repo-token.ts";
import { listWithEnded, mintWithRoom } from "./ended-grants.ts";
import type { GitParts } from "./git-parts.ts";
import { newRepoToken, repoTokenText } from "./repo-token-text.ts";

/** How long the record of an expired token can still be found by the token's id. */
const TOKEN_REMEMBERED_MS = 30 * 24 * 60 * 60_000;

/** The lifetime of a repository's token, and the OAuth grant with which it ends. */
export interface TokenBounds {
  ttlS: number;
  grantId?: string;
}

export interface MintedToken extends RepoToken {
  /** The token as text. Only this response contains it. */
  plaintext: string;
}

type RepoTokensParts = Pick<GitParts, "actors" | "finder"> & { now: () => number };

export class RepoTokens {
  readonly #parts: RepoTokensParts;

  constructor(parts: RepoTokensParts) {
    this.#parts = parts;
  }

  async mint(
    address: RepoAddress,
    { scope = "write", ...bounds }: { scope?: RepoTokenScope } & Partial<TokenBounds>,
    signal: AbortSignal,
  ): Promise<MintedToken> {
    const { actors, finder } = this.#parts;
    return finder.with(address, signal, async (id) => {
      // Checks that the repository exists before a token is announced.
      await actors.call(repo, id, "get", address, { signal });
      const { secret, secretHash } = newRepoToken();
      const input = { secretHash, scope, ttlS: REPO_TOKEN_TTL_S, ...bounds };
      await this.announce(address.accountId, id, input);
      const token = await mintWithRoom(actors, { id, accountId: address.accountId }, input);
      return { ...token, plaintext: repoTokenText(secret, token.expiresAt) };
    });
  }

  async list(
    address: RepoAddress,
    query: {
      state: "active" | "expired" | "revoked" | "all";
      offset: number;
      limit: number;
    },
    signal: AbortSignal,
  ) {
    const { actors, finder } = this.#parts;
    return finder.with(address, signal, async (id) => {
      await actors.call(repo, id, "get", address, { signal });
      return listWithEnded(actors, { id, accountId: address.accountId }, query, signal);
    });
  }

  /**
   * Revokes a token. From the next request on, the token opens nothing. `revoked` is false if the token was revoked
   * before.
   */
  async revoke(
    accountId: string,
    space: string,
    tokenId: string,
    signal: AbortSignal,
  ): Promise<{ revoked: boolean }> {
    const { actors } = this.#parts;
    const key = repoTokenKey(accountId, tokenId);
    const { repoId } = await actors.call(repoToken, key, "find", {}, { signal });
    try {
      const known = await actors.call(repo, repoId, "get", { accountId }, { signal });
      if (folded(known.namespace) !== folded(space)) throw unknownToken();
      return await actors.call(repo, repoId, "revokeToken", { id: tokenId }, { signal });
    } catch (error) {
      // The error is the same whether the token or its repository does not exist.
      if (error instanceof ActorError && error.code === "not_found") throw unknownToken();
      throw error;
    }
  }

  /** Records which repository a new token opens, so that the token can be found and revoked by its id. */
  async announce(
    accountId: string,
    repoId: string,
    { secretHash, ttlS }: { secretHash: string; ttlS: number },
  ): Promise<void> {
    const { actors, now } = this.#parts;
    const key = repoTokenKey(accountId, repoTokenId(secretHash));
    const forgetAt = now() + ttlS * 1_000 + TOKEN_REMEMBERED_MS;
    await actors.call(repoToken, key, "issue", { repoId, forgetAt });
  }
}

const unknownToken = () => new ActorError("not_found", "Token not found");

/** Decides by a git client's token whether the client may read or write a repository. */
import type { Request, Response } from "express";
import { PERMISSIONS, permits } from "../../../schemas/account/permissions.ts";
import { ActorError, type ErrorCode } from "../../../schemas/errors.ts";
import { NamespaceName, RepoName } from "../../../schemas/repositories/git-names.ts";
import { LFS_LOCK_NAME_CHARS_MAX } from "../../../schemas/repositories/limits.ts";
import {
  type RepoAddress,
  type RepoToken,
  type RepoTokenScope,
  repo,
  repoTokenId,
} from "../../../schemas/repositories/repo.ts";
import { Id } from "../../../schemas/values.ts";
import { readToken } from "../../account/api-token-text.ts";
import {
  type Attempt,
  type Credential,
  FailedAuthentications,
} from "../../account/failed-authentications.ts";
import type { FoundToken, Tokens } from "../../account/found-token.ts";
import { localsOf } from "../../http/locals.ts";
import type { GitParts } from "../git-parts.ts";
import { repoTokenHash } from "../repo-token-text.ts";
import { shownToken } from "./git-auth.ts";
import type { Exchange, Service } from "./git-exchange.ts";

interface GitAccessParts extends Pick<GitParts, "actors" | "finder"> {
  now: () => number;
  /** API tokens of accounts. When absent, only a repository's own tokens open it, and none that rests on a grant. */
  tokens?: Tokens | undefined;
}

/** The client that sent a valid token. */
interface GitClient {
  /** The id of its token. */
  id: string;
  /** The user name in the address of the client's remote; defaults to `id`. */
  name: string;
}

/** The access that a request wants. */
interface Wanted<T> {
  address: RepoAddress;
  service: Service;
  signal: AbortSignal;
  use: Use<T>;
  user: string | undefined;
}
type Use<T> = (id: string, address: RepoAddress, client: GitClient) => Promise<T>;

export class GitAccess {
  readonly #parts: GitAccessParts;
  readonly #failed: FailedAuthentications;

  constructor(parts: GitAccessParts) {
    this.#parts = parts;
    this.#failed = new FailedAuthentications(parts.now);
  }

  /** Resolves to the result of `use`. `use` must only read, because it may run before the token was verified. */
  async authorize<T>(
    { request, response, signal }: Exchange,
    service: Service,
    use: Use<T>,
  ): Promise<T> {
    const shown = shownToken(request.get("authorization"));
    if (shown === undefined) {
      throw new ActorError(
        "unauthenticated",
        "A token of this repository, or an API token of its account, is needed",
      );
    }
    const { text, user } = shown;
    const wanted = { address: addressOf(request), service, signal, use, user };
    const { accountId } = wanted.address;
    // OAuth access tokens do not open repositories, because users would write them into the addresses of remotes,
    // which git stores.
    const found = readToken(text) && this.#parts.tokens?.read(text, accountId);
    const client = clientAt(request, response);
    return found
      ? await this.#openWithApiToken(client, found, wanted)
      : await this.#openWithRepoToken(client, repoTokenHash(text), wanted);
  }

  async #openWithRepoToken<T>(
    client: string,
    secretHash: string,
    { address, service, signal, use, user }: Wanted<T>,
  ): Promise<T> {
    const { actors, finder } = this.#parts;
    const opens = async (id: string) => {
      const used = use(id, address, clientOf(repoTokenId(secretHash), user));
      // If the token is refused first, nobody awaits `used`. Its rejection must then not count as unhandled.
      used.catch(() => {});
      const input = { address, secretHash };
      const token = await actors
        .call(repo, id, "verifyToken", input, { signal })
        .catch((error: unknown) => {
          throw isRefusal(error, "forbidden") ? new TokenRefused() : error;
        });
      const scope = await this.#scopeOf(token, address.accountId);
      return [scope, await used] as const;
    };
    // A repository's token belongs to no user, so its own hash identifies it.
    const credential = { identity: secretHash, proof: "" };
    const isUnknown = (error: unknown) =>
      error instanceof TokenRefused || isRefusal(error, "not_found");
    const [scope, result] = await this.#attempt({ client, credential, signal }, isUnknown, () =>
      finder.with(address, signal, opens),
    );
    if (service === "git-receive-pack" && scope !== "write") {
      throw new ActorError("forbidden", "Insufficient permissions: this token can only read");
    }
    return result;
  }

  /**
   * Resolves to the scope that a repository's token has now. A token that was made with an OAuth grant does no more than
   * the grant's client and person still may. Rejects with TokenRefused if that is nothing.
   */
  async #scopeOf(
    { id, scope, grantId }: Pick<RepoToken, "id" | "scope" | "grantId">,
    accountId: string,
  ): Promise<RepoTokenScope> {
    if (grantId === undefined) return scope;
    const permission = scope === "write" ? "artifacts.write" : "artifacts.read";
    const issued = { accountId, tokenId: id, permissions: [permission] as const, grantId };
    const caller = await this.#parts.tokens?.verifyIssued(issued).catch((error: unknown) => {
      throw isRefusal(error, "unauthenticated") ? new TokenRefused() : error;
    });
    const held = caller?.permissions ?? [];
    if (permits(held, "artifacts.write")) return "write";
    if (permits(held, "artifacts.read")) return "read";
    throw new TokenRefused();
  }

  /** Opens a repository of the token's account, if the token's permissions for the REST API allow it. */
  async #openWithApiToken<T>(
    client: string,
    { credential, find }: FoundToken,
    { address, service, signal, use, user }: Wanted<T>,
  ): Promise<T> {
    const { actors, finder } = this.#parts;
    const isUnknown = (error: unknown) => isRefusal(error, "unauthenticated");
    const caller = await this.#attempt({ client, credential, signal }, isUnknown, find);
    if (caller.accountId !== address.accountId) throw new ActorError("forbidden", NOT_OPENED);
    const needed = service === "git-receive-pack" ? "artifacts.write" : "artifacts.read";
    if (!permits(caller.permissions, needed)) {
      const text = `Insufficient permissions: this token lacks "${PERMISSIONS[needed]}"`;
      throw new ActorError("forbidden", text);
    }
    return await finder.with(address, signal, async (id) => {
      // By now the remembered id may belong to a repository with another name.
      await actors.call(repo, id, "get", address, { signal });
      return use(id, address, clientOf(caller.tokenId, user));
    });
  }

  /**
   * Counts the attempt as failed if the token is unknown. The refusal is then the same whether or not the repository
   * exists.
   */
  async #attempt<T>(
    shown: { client: string; credential: Credential; signal: AbortSignal },
    isUnknown: (error: unknown) => boolean,
    open: () => Promise<T>,
  ): Promise<T> {
    const attempt = await this.#failed.begin(shown.client, shown.credential, shown.signal);
    try {
      const opened = await open();
      attempt.settle("good");
      return opened;
    } catch (error) {
      throw refusalOf(attempt, error, isUnknown(error));
    }
  }
}

const clientOf = (id: string, user = id): GitClient => ({
  id,
  name: user.slice(0, LFS_LOCK_NAME_CHARS_MAX).toWellFormed(),
});

/**
 * Returns the client for which unknown tokens are counted. Calls of apps come over a socket without an address, so they
 * count for the account of the app.
 */
function clientAt(request: Request, response: Response): string {
  const { caller } = localsOf(response);
  return caller ? `apps of ${caller.accountId}` : (request.ip ?? "");
}

/** Returns the refusal of a failed attempt. It does not show strangers which repositories exist. */
function refusalOf(attempt: Attempt, error: unknown, isUnknown: boolean): unknown {
  const retryAfterS = attempt.settle(isUnknown ? "unknown" : "unclear");
  if (retryAfterS > 0) {
    const text = "Too many unknown tokens came from this address";
    return new ActorError("rate_limited", text, { retryAfterS });
  }
  return isUnknown ? new ActorError("forbidden", NOT_OPENED) : error;
}

const NOT_OPENED = "Invalid or expired token, or there is no such repository";
class TokenRefused extends Error {}

const isRefusal = (error: unknown, code: ErrorCode) =>
  error instanceof ActorError && error.code === code;

/**
 * Reads the repository's address from the path. An address that no repository can have is refused like an unknown
 * repository.
 */
function addressOf({ params }: Request): RepoAddress {
  const accountId = Id.safeParse(params.account);
  const namespace = NamespaceName.safeParse(params.namespace);
  const name = RepoName.safeParse(String(params.name).replace(/\.git$/, ""));
  if (!accountId.success || !namespace.success || !name.success) {
    throw new ActorError("forbidden", NOT_OPENED);
  }
  return { accountId: accountId.data, namespace: namespace.data, name: name.data };
}

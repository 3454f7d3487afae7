/** All operations on an account's repositories except the git protocol, for the REST API and for apps. */
import { randomBytes } from "node:crypto";
import { ActorError } from "../../schemas/errors.ts";
import { namespaceKey } from "../../schemas/repositories/git-names.ts";
import { gitStorage } from "../../schemas/repositories/git-storage.ts";
import { REPO_TOKEN_TTL_S } from "../../schemas/repositories/limits.ts";
import {
  type NamespaceEntry,
  namespace,
  type RepoListing,
  type RepoSort,
} from "../../schemas/repositories/namespace.ts";
import { type ListedNamespace, namespaceList } from "../../schemas/repositories/namespace-list.ts";
import {
  type RepoAddress,
  type RepoEntry,
  type RepoOrigin,
  type RepoStatus,
  repo,
  repoTokenId,
} from "../../schemas/repositories/repo.ts";
import { repoToken, repoTokenKey } from "../../schemas/repositories/repo-token.ts";
import { claimName, releaseClaim, removeNamed } from "./claim-name.ts";
import type { GitParts } from "./git-parts.ts";
import type { OpenedRepo } from "./opened-repo.ts";
import { heldNow, type KeptPack } from "./packs/pack-store.ts";
import type { ObjectReaders } from "./read/read-objects.ts";
import { RepoReader } from "./read/read-repo.ts";
import { newRepoToken, repoTokenText } from "./repo-token-text.ts";
import { RepoTokens, type TokenBounds } from "./repo-tokens.ts";
import { CommitTurns } from "./write/commit-turns.ts";

export interface RepositoriesParts extends GitParts {
  readers: ObjectReaders;
  /** The start of the addresses of remotes, without a slash at the end. */
  publicUrl: string;
  now: () => number;
}

export interface NewRepo {
  description?: string | null | undefined;
  defaultBranch?: string | undefined;
  readOnly?: boolean | undefined;
  /** The bounds of the first token. */
  bounds?: TokenBounds | undefined;
}

/** A new repository, with a token that may read and write it. */
export interface CreatedRepo extends RepoEntry {
  remote: string;
  token: string;
}

interface NewContent {
  refs: [string, string][];
  packs: KeptPack[];
  /** The greatest depth that the directory tree can have. */
  treeDepth: number;
}

export class Repositories {
  readonly parts: RepositoriesParts;
  readonly commitTurns = new CommitTurns();
  readonly tokens: RepoTokens;

  constructor(parts: RepositoriesParts) {
    this.parts = parts;
    this.tokens = new RepoTokens(parts);
  }

  remote({ accountId, namespace: space, name }: RepoAddress): string {
    return `${this.parts.publicUrl}/git/${accountId}/${space}/${name}.git`;
  }

  // --- Namespaces ---

  async createNamespace(accountId: string, name: string): Promise<NamespaceEntry> {
    const { actors } = this.parts;
    await actors.call(namespaceList, accountId, "announce", { name });
    const key = namespaceKey(accountId, name);
    return actors.call(namespace, key, "create", { accountId, name });
  }

  getNamespace(accountId: string, name: string): Promise<NamespaceEntry> {
    return this.parts.actors.call(namespace, namespaceKey(accountId, name), "get", {});
  }

  async deleteNamespace(accountId: string, name: string): Promise<void> {
    await this.parts.actors.call(namespace, namespaceKey(accountId, name), "remove", {});
  }

  /** Lists namespaces in the order of names. */
  listNamespaces(
    accountId: string,
    query: { limit: number; after?: string | undefined },
  ): Promise<{ namespaces: ListedNamespace[]; more: boolean; total: number }> {
    const { limit, after } = query;
    const input = { limit, ...(after !== undefined && { after }) };
    return this.parts.actors.call(namespaceList, accountId, "list", input);
  }

  // --- Repositories ---

  async create(address: RepoAddress, settings: NewRepo = {}): Promise<CreatedRepo> {
    return this.make(address, settings, { source: null, status: "ready" });
  }

  /** Starts an import. The repository exists immediately, still empty, and `get` returns the progress. */
  async import(
    address: RepoAddress,
    {
      url,
      branch,
      depth,
      readOnly = false,
      bounds,
    }: {
      url: string;
      branch?: string | undefined;
      depth?: number | undefined;
    } & Pick<NewRepo, "readOnly" | "bounds">,
  ): Promise<CreatedRepo> {
    const origin = { url, branch: branch ?? null, depth: depth ?? null, readOnly };
    const settings = { bounds, ...(branch !== undefined && { defaultBranch: branch }) };
    const { actors } = this.parts;
    const { accountId } = address;
    const id = newRepoId();
    const made = { source: `git:${url}`, status: "importing" as const, origin, id };
    try {
      await actors.call(gitStorage, accountId, "holdImport", { id });
      return await this.make(address, settings, made);
    } catch (error) {
      // The place may be taken although no answer came. If this message is lost, it is free after a day.
      void actors.send(gitStorage, accountId, "importEnded", { id }).catch(() => {});
      throw error;
    }
  }

  async get(address: RepoAddress, signal: AbortSignal): Promise<RepoEntry> {
    return this.#with(address, signal, (id) =>
      this.parts.actors.call(repo, id, "get", address, { signal }),
    );
  }

  list(
    accountId: string,
    space: string,
    query: {
      limit: number;
      search?: string | undefined;
      sort: RepoSort;
      direction: "asc" | "desc";
      after?: { value: string | number; id: string } | undefined;
    },
  ): Promise<{ repos: RepoListing[]; more: boolean; total: number }> {
    const { search, after, ...rest } = query;
    const input = { ...rest, ...(search !== undefined && { search }), ...(after && { after }) };
    return this.parts.actors.call(namespace, namespaceKey(accountId, space), "list", input);
  }

  async configure(
    address: RepoAddress,
    settings: {
      description?: string | null | undefined;
      defaultBranch?: string | undefined;
      readOnly?: boolean | undefined;
      protectedRefs?: string[] | undefined;
    },
    signal: AbortSignal,
  ): Promise<RepoEntry> {
    const given = Object.entries(settings).filter(([, value]) => value !== undefined);
    const changed = { ...Object.fromEntries(given), byClient: true as const };
    return this.#with(address, signal, (id) =>
      this.parts.actors.call(repo, id, "configure", changed, { signal }),
    );
  }

  /**
   * Schedules the permanent deletion of unreachable objects. Until it happens, a client that knows an object's id can
   * still fetch the object. Without a prune such objects stay, as users of git expect after a mistaken force push.
   * Returns the earliest time of the prune.
   */
  async prune(address: RepoAddress, signal: AbortSignal): Promise<{ id: string; at: number }> {
    const { actors, now } = this.parts;
    return this.#with(address, signal, async (id) => {
      const entry = await actors.call(repo, id, "get", address, { signal });
      if (entry.status === "importing" || entry.status === "forking") {
        const text = "Cannot prune: the repository is not there yet";
        throw new ActorError(
          `${entry.status === "importing" ? "import" : "fork"}_in_progress`,
          text,
        );
      }
      const { at = now() } = await actors.call(repo, id, "prune", {});
      return { id, at };
    });
  }

  /** Deletes a repository. A repetition succeeds. */
  delete(address: RepoAddress): Promise<{ id: string }> {
    return removeNamed(this.parts.actors, address);
  }

  /** Returns a reader of the repository's present objects and refs. */
  async reader(address: RepoAddress, signal: AbortSignal): Promise<RepoReader> {
    return this.readerOf(await this.open(address, signal), signal);
  }

  readerOf(opened: OpenedRepo, signal: AbortSignal): RepoReader {
    return new RepoReader(this.parts, this.parts.readers, opened, signal);
  }

  open(address: RepoAddress, signal: AbortSignal): Promise<OpenedRepo> {
    const { accountId } = address;
    return this.#with(address, signal, async (id) => {
      const manifest = await this.parts.manifests.read(id, address, signal);
      return { id, accountId, address, manifest };
    });
  }

  // --- For forks and imports ---

  /** Creates a repository under an unused name, with its first token. */
  async make(
    address: RepoAddress,
    settings: NewRepo,
    origin: {
      source: string | null;
      status: Exclude<RepoStatus, "failed">;
      /** Finds the first content while the name is being claimed. */
      content?: () => Promise<NewContent>;
      shallow?: readonly string[];
      origin?: RepoOrigin;
      /** The repository's id, if the caller has already used it. */
      id?: string;
      /** True if the namespace exists and is in the account's list. */
      isListed?: boolean;
    },
  ): Promise<CreatedRepo> {
    const { actors, now } = this.parts;
    const { accountId, namespace: space, name } = address;
    const { description = null, defaultBranch = "main", readOnly = false } = settings;
    const shown = { description, defaultBranch, readOnly };
    const { source, status, content, shallow = [], origin: imported, isListed } = origin;
    const { id = newRepoId() } = origin;
    const times = { createdAt: now(), updatedAt: now(), lastPushAt: null };
    const listing = { id, name, ...shown, source, status, ...times };
    const { secret, secretHash } = newRepoToken();
    const { ttlS = REPO_TOKEN_TTL_S, ...held } = settings.bounds ?? {};
    const token = { secretHash, scope: "write" as const, ttlS, ...held };
    if (!isListed) await actors.call(namespaceList, accountId, "announce", { name: space });
    const claim = claimName(actors, address, listing);
    const [filled] = await Promise.all([
      content?.().catch((error: unknown) => {
        // Releases the claim immediately, so that the name is free before the claim expires.
        void claim.then(() => releaseClaim(actors, address, id)).catch(() => {});
        throw error;
      }),
      claim,
      this.#load(accountId, id, secretHash),
    ]);
    const created = actors.call(repo, id, "create", {
      ...address,
      ...shown,
      protectedRefs: [],
      source,
      status,
      token,
      ...(shallow.length > 0 && { shallow: [...shallow] }),
      ...(filled && { content: { ...filled, packs: filled.packs.map(heldNow) } }),
      ...(imported && { origin: imported }),
    });
    // The repository and its token's record are both durable when the client gets the response. So the client can
    // find and revoke the token by its id.
    const announced = this.tokens.announce(accountId, id, token);
    const [entry] = await Promise.all([created, announced]).catch(async (error: unknown) => {
      await Promise.allSettled([created, announced]);
      // The repository may exist nevertheless, and hold pushes of other clients. So it decides itself whether its name
      // becomes free. If this message is lost, the claim expires.
      void actors.send(repo, id, "creationFailed", address).catch(() => {});
      // If this message is lost, the token opens nothing.
      const tokenKey = repoTokenKey(accountId, repoTokenId(secretHash));
      void actors.send(repoToken, tokenKey, "forget", {}).catch(() => {});
      throw error;
    });
    const expiresAt = entry.createdAt + ttlS * 1_000;
    return { ...entry, remote: this.remote(address), token: repoTokenText(secret, expiresAt) };
  }

  /**
   * Loads the actors of the repository and of the token first, so that the two messages that follow share one commit.
   */
  async #load(accountId: string, id: string, secretHash: string): Promise<void> {
    const { actors } = this.parts;
    const key = repoTokenKey(accountId, repoTokenId(secretHash));
    await Promise.allSettled([
      actors.call(repo, id, "get", {}),
      actors.call(repoToken, key, "find", {}),
    ]);
  }

  #with<T>(address: RepoAddress, signal: AbortSignal, use: (id: string) => Promise<T>): Promise<T> {
    return this.parts.finder.with(address, signal, use);
  }
}

const ID_CHARS = 16;

/** Returns a random id of 16 digits and lower-case letters, as in the public API. */
function newRepoId(): string {
  const random = BigInt(`0x${randomBytes(16).toString("hex")}`) % 36n ** BigInt(ID_CHARS);
  return random.toString(36).padStart(ID_CHARS, "0");
}

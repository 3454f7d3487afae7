/** One repository, as code of apps works with it. */
import type { z } from "zod";
import type { CommitFiles } from "../../../schemas/repositories/http/artifacts.ts";
import type {
  CommittedFiles,
  MintedRepoToken,
  WireCommit,
  WireDiff,
  ForkedRepo as WireForked,
  WireRef,
  WireRepoDetails,
  WireRepoToken,
  WireTreeEntry,
} from "../../../schemas/repositories/http/artifacts-answers.ts";
import { ArtifactsError } from "../package/api-error.ts";
import { type Camelized, camelized } from "./camel-case.ts";
import { type Page, pageOf, type RestCalls } from "./rest-binding.ts";

export type RepoDetails = Camelized<z.output<typeof WireRepoDetails>>;
export type ForkedRepo = Camelized<z.output<typeof WireForked>>;
export type Commit = Camelized<z.output<typeof WireCommit>>;
export type TreeEntry = z.output<typeof WireTreeEntry>;
export type Ref = Camelized<z.output<typeof WireRef>>;
export type Diff = Camelized<z.output<typeof WireDiff>>;
export type RepoToken = Camelized<z.output<typeof WireRepoToken>>;
export type MintedToken = Camelized<z.output<typeof MintedRepoToken>>;
export type NewCommit = z.input<typeof CommitFiles>;
export type MadeCommit = Camelized<z.output<typeof CommittedFiles>>;

/** A `ref` is a branch, a tag, a whole ref such as refs/heads/main, the id of a commit, or HEAD. */
export interface ArtifactsRepo extends Disposable {
  readonly name: string;
  info(): Promise<RepoDetails>;
  update(settings: {
    description?: string | null;
    defaultBranch?: string;
    readOnly?: boolean;
    protectedRefs?: string[];
  }): Promise<RepoDetails>;
  fork(
    name: string,
    options?: { description?: string; readOnly?: boolean; defaultBranchOnly?: boolean },
  ): Promise<ForkedRepo>;
  /** Drops what no ref leads to any more. */
  prune(): Promise<void>;

  /** By first parents, newest first; NOT_FOUND where there is no such ref. */
  log(options?: { ref?: string; limit?: number; offset?: number }): Promise<Commit[]>;
  refs(options?: {
    prefix?: string;
    limit?: number;
    cursor?: string;
  }): Promise<Page & { refs: Ref[] }>;
  diff(base: string, head: string): Promise<Diff>;
  /** Null where there is none of this id. */
  readCommit(hash: string): Promise<Commit | null>;
  readTree(hash: string): Promise<TreeEntry[] | null>;
  readBlob(hash: string): Promise<Blob | null>;
  /** Null where there is no such file. */
  readFile(what: { ref: string; path: string }): Promise<Blob | null>;
  /** The same with a type found in its bytes. */
  readRaw(what: { ref: string; path: string }): Promise<Blob | null>;
  /** All files of a commit. */
  archive(ref: string, format?: "tar.gz" | "zip"): Promise<Blob>;
  /** All of it, or nothing: BRANCH_MOVED where the branch is not where `expected` says. */
  createCommit(commit: NewCommit): Promise<MadeCommit>;

  /** Opens this repository for git. */
  createToken(scope?: "read" | "write", ttl?: number): Promise<MintedToken>;
  listTokens(options?: {
    state?: "active" | "expired" | "revoked" | "all";
    page?: number;
    perPage?: number;
  }): Promise<Page & { tokens: RepoToken[] }>;
  /** False where there is none of this id. */
  revokeToken(id: string): Promise<boolean>;
}

interface Place {
  namespacePath: string;
  path: string;
  name: string;
}

export function artifactsRepo(calls: RestCalls, place: Place): ArtifactsRepo {
  return Object.freeze({
    name: place.name,
    ...settings(calls, place),
    ...content(calls, place),
    ...tokens(calls, place),
    // Nothing is held: it is there for code that says `using`.
    [Symbol.dispose]() {},
  });
}

function settings(
  calls: RestCalls,
  { path }: Place,
): Pick<ArtifactsRepo, "info" | "update" | "fork" | "prune"> {
  type Details = z.output<typeof WireRepoDetails>;
  return {
    info: async () => camelized(await calls.one<Details>(path)),
    async update({ description, defaultBranch, readOnly, protectedRefs }) {
      const json = {
        description,
        default_branch: defaultBranch,
        read_only: readOnly,
        protected_refs: protectedRefs,
      };
      return camelized(await calls.one<Details>(path, { method: "PATCH", json }));
    },
    async fork(name, { description, readOnly, defaultBranchOnly } = {}) {
      const json = {
        name,
        description,
        read_only: readOnly,
        default_branch_only: defaultBranchOnly,
      };
      const forked = calls.one<z.output<typeof WireForked>>(`${path}/fork`, {
        method: "POST",
        json,
      });
      return camelized(await forked);
    },
    async prune() {
      await calls.one(`${path}/prune`, { method: "POST" });
    },
  };
}

function content(
  calls: RestCalls,
  { path }: Place,
): Omit<
  ArtifactsRepo,
  | keyof ReturnType<typeof settings>
  | keyof ReturnType<typeof tokens>
  | "name"
  | typeof Symbol.dispose
> {
  const blob = async (below: string, query?: Record<string, string>) =>
    (await calls.bytes(`${path}${below}`, { query })).blob();
  return {
    log: async (options = {}) =>
      camelized(await calls.one<z.output<typeof WireCommit>[]>(`${path}/log`, { query: options })),
    async refs(options = {}) {
      const { result, info } = await calls.list<z.output<typeof WireRef>>(`${path}/refs`, options);
      return { refs: camelized(result), ...pageOf(info) };
    },
    diff: async (base, head) =>
      camelized(
        await calls.one<z.output<typeof WireDiff>>(`${path}/diff`, { query: { base, head } }),
      ),
    readCommit: (hash) =>
      orNull("Commit", async () =>
        camelized(await calls.one<z.output<typeof WireCommit>>(`${path}/commit/${step(hash)}`)),
      ),
    readTree: (hash) => orNull("Tree", () => calls.one<TreeEntry[]>(`${path}/tree/${step(hash)}`)),
    readBlob: (hash) => orNull("Blob", () => blob(`/blob/${step(hash)}`)),
    readFile: (what) => orNull("File", () => blob("/file", what)),
    readRaw: ({ ref, path: file }) =>
      orNull("File", () => blob(`/raw/${step(ref)}/${file.split("/").map(step).join("/")}`)),
    archive: (ref, format = "tar.gz") => blob(`/archive/${step(ref)}.${format}`),
    async createCommit(commit) {
      const made = calls.one<z.output<typeof CommittedFiles>>(`${path}/commits`, {
        method: "POST",
        json: commit,
      });
      return camelized(await made);
    },
  };
}

function tokens(
  calls: RestCalls,
  { namespacePath, path, name }: Place,
): Pick<ArtifactsRepo, "createToken" | "listTokens" | "revokeToken"> {
  return {
    async createToken(scope, ttl) {
      const minted = calls.one<z.output<typeof MintedRepoToken>>(`${namespacePath}/tokens`, {
        method: "POST",
        json: { repo: name, scope, ttl },
      });
      return camelized(await minted);
    },
    async listTokens({ state, page, perPage } = {}) {
      const { result, info } = await calls.list<z.output<typeof WireRepoToken>>(`${path}/tokens`, {
        state,
        page,
        per_page: perPage,
      });
      return { tokens: camelized(result), ...pageOf(info) };
    },
    async revokeToken(id) {
      const revoked = await orNull("Token", () =>
        calls.one(`${namespacePath}/tokens/${step(id)}`, { method: "DELETE" }),
      );
      return revoked !== null;
    },
  };
}

const step = encodeURIComponent;

/** Where a repository itself is missing, that is thrown. */
async function orNull<T>(what: string, work: () => Promise<T>): Promise<T | null> {
  try {
    return await work();
  } catch (error) {
    const isMissing =
      error instanceof ArtifactsError &&
      error.code === "NOT_FOUND" &&
      error.message.startsWith(what);
    if (isMissing) return null;
    throw error;
  }
}

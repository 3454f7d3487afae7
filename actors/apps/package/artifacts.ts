/** Types of the binding for repositories, for app code. */
/// <reference lib="esnext.disposable" preserve="true" />
import type { z } from "zod";
import type { CommitFiles } from "../../../schemas/repositories/http/artifacts.ts";
import type {
  CommittedFiles,
  MintedRepoToken,
  WireCommit,
  CreatedRepo as WireCreated,
  WireDiff,
  ForkedRepo as WireForked,
  WireNamespace,
  WireRef,
  WireRepo,
  WireRepoDetails,
  WireRepoToken,
  WireStored,
  WireTreeEntry,
} from "../../../schemas/repositories/http/artifacts-answers.ts";
import type { Camelized } from "./camel-case.ts";
import type { Page, RestBinding } from "./rest-binding.ts";

export type Namespace = Camelized<z.output<typeof WireNamespace>>;
/** A repository in a list. */
export type Repo = Camelized<z.output<typeof WireRepo>>;
export type ArtifactsUsage = Camelized<z.output<typeof WireStored>>;
/** A new repository, with a git token that no later call returns. */
export type CreatedRepo = Camelized<z.output<typeof WireCreated>>;

export interface Artifacts extends RestBinding {
  readonly namespace: string;
  create(
    name: string,
    options?: { description?: string; readOnly?: boolean; setDefaultBranch?: string },
  ): Promise<CreatedRepo>;
  /** Throws NOT_FOUND if the repository does not exist. */
  get(name: string): Promise<ArtifactsRepo>;
  list(options?: {
    limit?: number;
    cursor?: string;
    search?: string;
    sort?: "created_at" | "updated_at" | "last_push_at" | "name";
    direction?: "asc" | "desc";
  }): Promise<Page & { repos: Repo[] }>;
  /** Returns false if it did not exist. */
  delete(name: string): Promise<boolean>;
  /** Imports a public repository. `info()` of the new repository reports the progress. */
  import(what: {
    source: { url: string; branch?: string; depth?: number };
    target: { name: string; opts?: { readOnly?: boolean } };
  }): Promise<CreatedRepo>;
  /** Returns the bytes that the account's repositories use, and their limit. */
  usage(): Promise<ArtifactsUsage>;
  /**
   * Returns the binding for another namespace that trunkline.jsonc binds. For any other namespace, calls throw
   * FORBIDDEN.
   */
  in(namespace: string): Artifacts;
  /** The namespaces that trunkline.jsonc binds. `list` shows only the binding's own namespace. */
  readonly namespaces: {
    create(name: string): Promise<Namespace>;
    get(name: string): Promise<Namespace>;
    list(options?: {
      limit?: number;
      cursor?: string;
    }): Promise<Page & { namespaces: Namespace[] }>;
    /** Deletes an empty namespace. Returns false if the namespace did not exist. */
    delete(name: string): Promise<boolean>;
  };
}

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

/**
 * A repository. In its methods, `ref` is a branch, a tag, a full ref such as refs/heads/main, a commit id, or HEAD.
 */
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
  /** Deletes objects that no ref reaches: soon, or three hours after the repository's last prune. */
  prune(): Promise<void>;

  /** Lists commits by first parents, newest first. Throws NOT_FOUND if the ref does not exist. */
  log(options?: { ref?: string; limit?: number; offset?: number }): Promise<Commit[]>;
  refs(options?: {
    prefix?: string;
    limit?: number;
    cursor?: string;
  }): Promise<Page & { refs: Ref[] }>;
  diff(base: string, head: string): Promise<Diff>;
  /** Returns null if no commit has this id. */
  readCommit(hash: string): Promise<Commit | null>;
  readTree(hash: string): Promise<TreeEntry[] | null>;
  readBlob(hash: string): Promise<Blob | null>;
  /** Returns null if the file does not exist. */
  readFile(what: { ref: string; path: string }): Promise<Blob | null>;
  /** Like `readFile`, with a content type detected from the bytes. */
  readRaw(what: { ref: string; path: string }): Promise<Blob | null>;
  /** Returns all files of a commit as an archive. */
  archive(ref: string, format?: "tar.gz" | "zip"): Promise<Blob>;
  /** Creates a commit with all changes or none. Throws BRANCH_MOVED if the branch is not at `expected`. */
  createCommit(commit: NewCommit): Promise<MadeCommit>;

  /** Creates a token with which git can access this repository. */
  createToken(scope?: "read" | "write", ttl?: number): Promise<MintedToken>;
  listTokens(options?: {
    state?: "active" | "expired" | "revoked" | "all";
    page?: number;
    perPage?: number;
  }): Promise<Page & { tokens: RepoToken[] }>;
  /** Returns false if no token has this id. */
  revokeToken(id: string): Promise<boolean>;
}

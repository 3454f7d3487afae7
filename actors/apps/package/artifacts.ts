/** The binding for repositories, as the code of an app sees it. */
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
/** A repository as a list shows it. */
export type Repo = Camelized<z.output<typeof WireRepo>>;
export type ArtifactsUsage = Camelized<z.output<typeof WireStored>>;
/** With a token for git, which is shown this once. */
export type CreatedRepo = Camelized<z.output<typeof WireCreated>>;

export interface Artifacts extends RestBinding {
  readonly namespace: string;
  create(
    name: string,
    options?: { description?: string; readOnly?: boolean; setDefaultBranch?: string },
  ): Promise<CreatedRepo>;
  /** Throws NOT_FOUND where there is none. */
  get(name: string): Promise<ArtifactsRepo>;
  list(options?: {
    limit?: number;
    cursor?: string;
    search?: string;
    sort?: "created_at" | "updated_at" | "last_push_at" | "name";
    direction?: "asc" | "desc";
  }): Promise<Page & { repos: Repo[] }>;
  /** False where there was none. */
  delete(name: string): Promise<boolean>;
  /** Imports a public repository. `info()` of the new one reports the progress. */
  import(what: {
    source: { url: string; branch?: string; depth?: number };
    target: { name: string; opts?: { readOnly?: boolean } };
  }): Promise<CreatedRepo>;
  /** Bytes that the account has in repositories, and may have. */
  usage(): Promise<ArtifactsUsage>;
  /** The same for another namespace that trunkline.jsonc binds; all else is refused as FORBIDDEN. */
  in(namespace: string): Artifacts;
  /** The namespaces that trunkline.jsonc binds. `list` shows only the binding's own. */
  readonly namespaces: {
    create(name: string): Promise<Namespace>;
    get(name: string): Promise<Namespace>;
    list(options?: {
      limit?: number;
      cursor?: string;
    }): Promise<Page & { namespaces: Namespace[] }>;
    /** One without repositories; false where there was none. */
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
  /** Makes the whole commit or none. Throws BRANCH_MOVED if the branch is not where `expected` says. */
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

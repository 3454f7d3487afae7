/** Wire shapes of responses about repositories. */
import { z } from "zod";
import {
  ImportProgress,
  RepoStatus,
  RepoTokenId,
  RepoTokenScope,
  RepoTokenState,
} from "../repo.ts";

const Time = z.iso.datetime();
const Hash = z.string().regex(/^[0-9a-f]{40}$/);
const RepoId = z.string().regex(/^[0-9a-z]{16}$/);

export const WireNamespace = z.object({
  namespace: z.string(),
  jurisdiction: z.literal("unrestricted"),
  repo_count: z.int(),
  created_at: Time,
  updated_at: Time,
});

export const WireStored = z.object({
  bytes: z
    .int()
    .describe(
      "Bytes of packs and large files, each counted once; deleted ones still count for some hours",
    ),
  bytes_max: z.int().nullable().describe("Null if there is no limit"),
});

export const WireRepo = z.object({
  id: RepoId,
  name: z.string(),
  description: z.string().nullable(),
  default_branch: z.string(),
  created_at: Time,
  updated_at: Time,
  last_push_at: Time.nullable(),
  source: z
    .string()
    .nullable()
    .describe("artifacts:<namespace>/<name> for a fork, git:<url> for an import"),
  read_only: z.boolean(),
  remote: z.string().describe("The address for git"),
  status: RepoStatus,
  status_reason: z
    .string()
    .nullable()
    .describe(
      "Why an import or a fork has failed, or what an import lacks: refs whose names are not valid here, and large files that its host does not give",
    ),
});

/** A repository in a response about it alone, with the fields that lists omit. */
export const WireRepoDetails = WireRepo.extend({
  status_progress: ImportProgress.nullable().describe(
    "What an import is at, and how much of that is done",
  ),
  protected_refs: z.array(z.string()),
});

export const CreatedRepo = z.object({
  id: RepoId,
  name: z.string(),
  description: z.string().nullable(),
  default_branch: z.string(),
  remote: z.string(),
  token: z
    .string()
    .meta({ secret: true })
    .describe(
      "A token that reads and writes this repository by git for a day; shown only in this response",
    ),
});
export const ForkedRepo = CreatedRepo.extend({ objects: z.int() });
export const DeletedRepo = z.object({ id: RepoId });
export const PrunedRepo = z.object({
  id: RepoId,
  runs_at: Time.describe(
    "The earliest time of the prune: now, or three hours after the repository's last prune",
  ),
});

const Person = z.object({ name: z.string(), email: z.string() });
export const WireCommit = z.object({
  hash: Hash,
  treeHash: z.string(),
  message: z.string(),
  author: Person,
  committer: Person,
  parents: z.array(z.string()),
  authoredAt: z.int().describe("Seconds since 1970"),
  committedAt: z.int(),
});

export const WireTreeEntry = z.object({
  name: z.string(),
  mode: z.enum(["100644", "100755", "120000", "160000", "40000"]),
  hash: Hash,
  type: z.enum(["blob", "exec", "symlink", "gitlink", "tree"]),
});

export const WireRef = z.object({
  name: z.string().describe("Full name of the ref, for example refs/heads/main"),
  hash: Hash,
  is_default: z.boolean(),
  is_protected: z.boolean(),
});

export const WireDiff = z.object({
  base: Hash.describe(
    "The commit compared with; the id of the empty tree if the request names no base",
  ),
  head: Hash,
  files: z.array(
    z.object({
      path: z.string(),
      old_path: z.string().optional(),
      status: z.enum(["added", "deleted", "modified", "renamed", "type_changed"]),
      old_mode: z.string().nullable(),
      new_mode: z.string().nullable(),
      old_hash: Hash.nullable(),
      new_hash: Hash.nullable(),
      additions: z.int().nullable().describe("Number of lines; null for a binary file"),
      deletions: z.int().nullable(),
    }),
  ),
  patch: z.string().describe("A patch in the format of `git apply`"),
  truncated: z.boolean().describe("Whether the list is incomplete"),
});

export const CommittedFiles = WireCommit.extend({
  ref: z.string(),
  before: Hash.nullable().describe("The branch's commit before; null if the branch is new"),
});

export const WireRepoToken = z.object({
  id: RepoTokenId,
  scope: RepoTokenScope,
  state: RepoTokenState,
  created_at: Time,
  expires_at: Time,
  last_used_at: Time.nullable().describe("Accurate to one hour"),
});
export const MintedRepoToken = z.object({
  id: RepoTokenId,
  plaintext: z
    .string()
    .meta({ secret: true })
    .describe("The token itself; shown only in this response"),
  scope: RepoTokenScope,
  expires_at: Time,
});
export const RevokedRepoToken = z.object({ id: RepoTokenId });

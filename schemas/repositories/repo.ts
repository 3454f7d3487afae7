/** The contract of a repository: settings, manifest of refs and packs, tokens. The key is the repository's id. */
import { z } from "zod";
import { defineContract } from "../contract.ts";
import { EpochMs, Id, Sha256 } from "../values.ts";
import { BranchName, ProtectedRef, RepoId } from "./git-names.ts";
import { HeldLfsObject, LfsObject } from "./lfs.ts";
import { lfsLockMessages } from "./lfs-lock.ts";
import {
  COMMANDS_BYTES_MAX,
  IMPORT_DEPTH_MAX,
  IMPORT_URL_CHARS_MAX,
  LFS_BATCH_MAX,
  LFS_NAMED_MAX,
  PROTECTED_REFS_MAX,
  PUSH_OPTION_CHARS_MAX,
  PUSH_OPTIONS_BYTES_MAX,
  PUSH_OPTIONS_MAX,
  PUSH_PARTS_MAX,
  REF_ROWS,
  REFS_MAX,
  REPO_DESCRIPTION_CHARS_MAX,
  REPO_TOKEN_TTL_S_MAX,
  REPO_TOKEN_TTL_S_MIN,
  SWAP_PACKS_MAX,
  TREE_DEPTH_MAX,
} from "./limits.ts";
import { RepoAddress } from "./repo-address.ts";
import { ImportProgress, repoImportMessages, Shallow } from "./repo-import-messages.ts";
import { repoRemovalMessages } from "./repo-removal.ts";

const Nothing = z.object({});
const Version = z.int().min(0);
const Sentence = z.string().max(REPO_DESCRIPTION_CHARS_MAX);

export { ImportProgress, RepoAddress };

export const RepoStatus = z.enum(["ready", "importing", "forking", "failed"]);
export type RepoStatus = z.infer<typeof RepoStatus>;

/** The settings of a repository, which can change at any time. */
export const RepoSettings = z.object({
  description: Sentence.nullable(),
  defaultBranch: BranchName,
  readOnly: z.boolean(),
  protectedRefs: z.array(ProtectedRef).max(PROTECTED_REFS_MAX),
});

/** A repository as callers see it, without its content. */
export const RepoEntry = RepoAddress.extend({
  ...RepoSettings.shape,
  id: RepoId,
  /** The origin of the first content. */
  source: z.string().nullable(),
  status: RepoStatus,
  /** The reason of a failure, or the missing refs and large files of an import. */
  failure: z.string().nullable(),
  /** The progress while the repository is imported. */
  progress: ImportProgress.optional(),
  createdAt: EpochMs,
  updatedAt: EpochMs,
  lastPushAt: EpochMs.nullable(),
});
export type RepoEntry = z.infer<typeof RepoEntry>;

/** The origin of an import. */
export const RepoOrigin = z.object({
  /** An address that `importUrlOf` accepts. */
  url: z.string().max(IMPORT_URL_CHARS_MAX),
  /** The only branch to import; null imports all refs. */
  branch: z.string().nullable(),
  /** The number of commits to import from each line of history; null imports all. */
  depth: z.int().min(1).max(IMPORT_DEPTH_MAX).nullable().default(null),
  /** True if the repository refuses pushes after the end of the import. */
  readOnly: z.boolean(),
});
export type RepoOrigin = z.infer<typeof RepoOrigin>;

/** A pack and its index: one blob, the index first, named after the SHA-256 of the pack. */
export const Pack = z.object({
  sha256: Sha256,
  bytes: z.int().min(0),
  indexBytes: z.int().min(0),
});
export type Pack = z.infer<typeof Pack>;

/** A pack to add. The store keeps the pack for at least `heldMs` from now: a duration, because clocks may differ. */
export const HeldPack = Pack.extend({ heldMs: z.int().optional() });
export type HeldPack = z.infer<typeof HeldPack>;

/** The blob of a pack. Accounts share no blobs, or an account could read another account's objects by their ids. */
export const packBlob = (accountId: string, sha256: string) => `git.${accountId}.${sha256}`;

/** The repository's row that names a pack. The sweep keeps packs with such a row. */
export const packRow = (sha256: string) => `pack.${sha256}`;

/**
 * The change of one ref in a push: `<old> <new> <ref>`. As in git's own protocol, zeros stand for a missing object.
 */
const Command = z.string().regex(/^[0-9a-f]{40} [0-9a-f]{40} [^\0]{1,1024}$/);
const Commands = z
  .array(Command)
  .max(REFS_MAX)
  .refine(
    (commands) => commandsBytes(commands) <= COMMANDS_BYTES_MAX,
    `expected at most ${COMMANDS_BYTES_MAX} bytes; more come in parts`,
  );
const utf8 = new TextEncoder();
/** Returns the bytes that commands or options take in a message. */
export const commandsBytes = (commands: readonly string[]) =>
  utf8.encode(JSON.stringify(commands)).length;

/** Push options (`git push -o`), which the subscribers of the push receive. */
const PushOptions = z
  .array(z.string().max(PUSH_OPTION_CHARS_MAX))
  .max(PUSH_OPTIONS_MAX)
  .refine(
    (options) => commandsBytes(options) <= PUSH_OPTIONS_BYTES_MAX,
    `expected at most ${PUSH_OPTIONS_BYTES_MAX} bytes`,
  );

export const RepoTokenScope = z.enum(["read", "write"]);
export type RepoTokenScope = z.infer<typeof RepoTokenScope>;
export const RepoTokenId = z
  .string()
  .regex(/^[0-9a-z]{16}$/, "Expected 16 digits or lower-case letters");
export const RepoTokenState = z.enum(["active", "expired", "revoked"]);

/** A token without its secret. `grantId` is the OAuth grant that it was made with, and with which it ends. */
export const RepoToken = z.object({
  id: RepoTokenId,
  grantId: Id.optional(),
  scope: RepoTokenScope,
  createdAt: EpochMs,
  expiresAt: EpochMs,
  revokedAt: EpochMs.nullable(),
  /** Accurate to one hour. */
  lastUsedAt: EpochMs.nullable(),
});
export type RepoToken = z.infer<typeof RepoToken>;

const TOKEN_ID_CHARS = 16;
/** Computes a token's public id from its hash, so that the row of a token can be found by the token itself. */
export function repoTokenId(secretHash: string): string {
  const id = BigInt(`0x${secretHash}`) % 36n ** BigInt(TOKEN_ID_CHARS);
  return id.toString(36).padStart(TOKEN_ID_CHARS, "0");
}

const NewToken = z.object({
  secretHash: Sha256.meta({ secret: true }),
  scope: RepoTokenScope,
  ttlS: z.int().min(REPO_TOKEN_TTL_S_MIN).max(REPO_TOKEN_TTL_S_MAX),
  grantId: Id.optional(),
});

/** The rows of refs that a reader has: all that changed before `version`, and those up to `row` changed in it. */
const ManifestCursor = z.object({ version: Version, row: z.int().min(-1).max(REF_ROWS) });
export type ManifestCursor = z.infer<typeof ManifestCursor>;

/** The depth of the directory tree; absent when it was not measured. */
const TreeDepth = z.int().min(0).max(TREE_DEPTH_MAX);

/** The size limit of the repository that the calling gateway is configured with; REPO_BYTES_MAX when absent. */
const RepoBytes = z.int().min(0).optional();

/** Names of some refs with their values. */
export const RefTable = z.record(z.string(), z.string());

const ChangedSettings = RepoSettings.partial().extend({ byClient: z.literal(true).optional() });

export const repo = defineContract({
  kind: "repo",
  messages: {
    /** Creates the repository with its first token. Refuses a second creation with `conflict`. */
    create: {
      input: RepoAddress.extend({
        ...RepoSettings.shape,
        source: z.string().nullable(),
        status: RepoStatus.exclude(["failed"]),
        token: NewToken.optional(),
        /** The first content of the repository, if it is a fork. */
        content: z
          .object({
            refs: z.array(z.tuple([z.string(), z.string()])).max(REFS_MAX),
            packs: z.array(HeldPack).max(SWAP_PACKS_MAX),
            treeDepth: TreeDepth.optional(),
          })
          .optional(),
        shallow: Shallow.optional(),
        /** The origin of the content, if the status is `importing`. */
        origin: RepoOrigin.optional(),
      }),
      reply: RepoEntry,
    },
    ...repoImportMessages,
    /** Refuses if the repository does not exist or has another address. */
    get: { input: RepoAddress.partial(), reply: RepoEntry },
    /** With `byClient`, refuses `defaultBranch` and `readOnly` during an import or a fork, which set both. */
    configure: { input: ChangedSettings, reply: RepoEntry },
    /** Sets the status. A fork sends it when all content has arrived. */
    setStatus: {
      input: z.object({ status: RepoStatus, failure: z.string().nullable() }),
      reply: RepoEntry,
    },
    ...repoRemovalMessages,

    /**
     * Lists changes of refs and packs since `after`; `{ version: 0, row: -1 }` starts from the beginning. The caller
     * repeats the request with the reply's cursor until `done`. A single page may mix refs of several versions.
     */
    manifest: {
      input: z.object({
        address: RepoAddress,
        after: ManifestCursor,
        /** The version up to which the reader has all packs. */
        packsAfter: Version,
      }),
      reply: z.object({
        version: Version,
        /** Increases when objects may have been deleted. */
        generation: Version,
        head: z.string(),
        readOnly: z.boolean(),
        protectedRefs: z.array(z.string()),
        status: RepoStatus,
        shallow: z.array(z.string()),
        treeDepth: z.int().min(0),
        bytes: z.int().min(0),
        rows: z.array(z.object({ row: z.int(), refs: RefTable })),
        packs: z.array(Pack),
        /** True if `packs` lists all packs, false if it lists those added since the reader's version. */
        packsWhole: z.boolean(),
        cursor: ManifestCursor,
        done: z.boolean(),
      }),
    },

    /** Stores a part of a push that is too large for one message. The parts are numbered from 0. */
    stage: {
      input: z.object({
        push: Id,
        part: z
          .int()
          .min(0)
          .max(PUSH_PARTS_MAX - 1),
        commands: Commands,
      }),
      reply: Nothing,
    },
    /**
     * Checks a push against the current refs, and applies its changes together with its packs. After `create`, no
     * other message changes refs or adds objects. The packs must be stored, and must be complete together with the
     * packs of `generation`.
     */
    swap: {
      input: z.object({
        push: Id,
        /** All commands, or none if they were staged in `parts`. */
        commands: Commands,
        parts: z.int().min(0).max(PUSH_PARTS_MAX),
        atomic: z.boolean(),
        generation: Version,
        /** The indexes of the commands that are fast-forwards. */
        forward: z
          .array(
            z
              .int()
              .min(0)
              .max(REFS_MAX - 1),
          )
          .max(REFS_MAX),
        packs: z.array(HeldPack).max(SWAP_PACKS_MAX),
        bytesMax: RepoBytes,
        options: PushOptions.optional(),
        /** Depth of the directory tree with these packs, measured when it was `treeBelow` without them. */
        treeDepth: TreeDepth.optional(),
        treeBelow: TreeDepth.optional(),
      }),
      reply: z.object({
        /** A letter of REF_RESULTS for each command. */
        results: z.string().regex(/^[a-z]*$/),
        version: Version,
      }),
    },
    /**
     * Replaces packs by others that hold the same objects or, with `prune`, only the objects that refs reach. Refuses
     * with `conflict` if the generation changed, or a pack of `replaced` or `kept` no longer exists. With `prune`,
     * refuses also if anything changed since `version`.
     */
    compact: {
      input: z.object({
        version: Version,
        generation: Version,
        replaced: z.array(Sha256).min(1).max(SWAP_PACKS_MAX),
        packs: z.array(HeldPack).max(SWAP_PACKS_MAX),
        /** Packs that stay. They hold objects of the replaced packs that the new packs omit. */
        kept: z.array(Sha256).max(SWAP_PACKS_MAX).optional(),
        prune: z.boolean(),
        /** The depth of the directory tree, as it was measured at `version`. */
        treeDepth: TreeDepth.optional(),
      }),
      reply: z.object({ version: Version }),
    },

    /** Returns which of these large files the repository has, and how much more it can store. */
    findLfsObjects: {
      input: z.object({
        address: RepoAddress,
        oids: z.array(Sha256).max(LFS_BATCH_MAX),
        bytesMax: RepoBytes,
      }),
      reply: z.object({
        objects: z.array(LfsObject),
        /** `room`: the free bytes; `places`: how many more large files fit. */
        room: z.int(),
        places: z.int(),
        readOnly: z.boolean(),
        status: RepoStatus,
      }),
    },
    /** Adds stored large files. Refuses too many bytes with `storage_full`, too many files with `limit_reached`. */
    nameLfsObjects: {
      input: z.object({
        address: RepoAddress,
        objects: z.array(HeldLfsObject).max(LFS_NAMED_MAX),
        bytesMax: RepoBytes,
        /** Set by the import task. Valid only while the import runs. */
        ofImport: z.boolean().optional(),
      }),
      reply: Nothing,
    },
    /** Lists all large files in the order of their ids. */
    listLfsObjects: {
      input: z.object({ after: Sha256.optional() }),
      reply: z.object({ objects: z.array(LfsObject), more: z.boolean() }),
    },

    ...lfsLockMessages,

    /** Schedules the deletion of objects that no ref reaches. It runs at `at` or later; older hosts omit `at`. */
    prune: { input: Nothing, reply: z.object({ at: EpochMs.optional() }) },
    /** An upkeep task reports its end. `isFull`: the stream of packs had no room for its result. */
    upkeepEnded: { input: z.object({ pruned: z.boolean(), isFull: z.boolean().optional() }) },
    /** Reports that a push was refused for lack of space. The repository is then pruned, which may free space. */
    roomLacked: { input: Nothing },
    /** Reminder: the repository may have packs to compact. */
    upkeepDue: { input: Nothing },

    mintToken: { input: NewToken, reply: RepoToken },
    /** Lists the tokens, the newest first. */
    listTokens: {
      input: z.object({
        state: z.enum([...RepoTokenState.options, "all"]),
        offset: z.int().min(0),
        limit: z.int().min(1).max(100),
      }),
      reply: z.object({
        tokens: z.array(RepoToken.extend({ state: RepoTokenState })),
        total: z.int().min(0),
      }),
    },
    /** `revoked` is false if the token was revoked before. */
    revokeToken: {
      input: z.object({ id: RepoTokenId }),
      reply: z.object({ revoked: z.boolean() }),
    },
    /** Refuses another repository's address with `not_found`, and an invalid or expired token with `forbidden`. */
    verifyToken: {
      input: z.object({ address: RepoAddress, secretHash: Sha256.meta({ secret: true }) }),
      reply: RepoToken.pick({ id: true, scope: true, expiresAt: true, grantId: true }),
    },

    /** Reminder: the fork was not completed in time. */
    giveUp: { input: Nothing },
    /** Reminders: `dropStaged` deletes abandoned pushes, `clearRows` the next rows of a removed repository. */
    dropStaged: { input: Nothing },
    clearRows: { input: Nothing },
  },
});

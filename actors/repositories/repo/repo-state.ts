/**
 * The stored state of a repository: a small value, and rows for refs, packs, tokens and the parts of large pushes.
 */
import { z } from "zod";
import type { DeepReadonly } from "../../../schemas/contract.ts";
import { LfsLock } from "../../../schemas/repositories/lfs-lock.ts";
import { TREE_DEPTH_MAX } from "../../../schemas/repositories/limits.ts";
import { Pack, RefTable, RepoEntry, RepoToken } from "../../../schemas/repositories/repo.ts";
import { EpochMs, Sha256 } from "../../../schemas/values.ts";

const Version = z.int().min(0);

const Live = RepoEntry.omit({ id: true }).extend({
  life: z.literal("live"),
  /**
   * A secret random value that decides which row holds a ref. Without the secret, a client could choose names that
   * all go to one row.
   */
  seed: z.string().meta({ secret: true }),
  /** Increases with every change that readers of the manifest must see. */
  version: Version,
  generation: Version,
  /** Version of the last change that removed packs. */
  packsRemovedVersion: Version,
  refs: z.int().min(0),
  /** Bytes of all ref names as JSON. */
  refNamesBytes: z.int().min(0),
  packs: z.int().min(0),
  packsBytes: z.int().min(0),
  /** Commits whose parents were not imported (the shallow boundary). */
  shallow: z.array(z.string()).optional(),
  /** The imported branch, if the import fetched only one branch. */
  importedBranch: z.string().nullable().optional(),
  /** The greatest depth that the directory tree can have. Its real depth may be smaller. */
  treeDepth: z.int().min(0).default(TREE_DEPTH_MAX),
  /** The number of large files, and their bytes. */
  lfsObjects: z.int().min(0).default(0),
  lfsBytes: z.int().min(0).default(0),
  /** Large pushes that are not decided yet: the numbers of their stored parts, and when the last one arrived. */
  staged: z.array(z.object({ push: z.string(), parts: z.array(z.int()), at: EpochMs })),
  /** No upkeep task is enqueued before this time, because a task is running or has failed. */
  nextUpkeepAt: EpochMs.optional(),
  /** `toPrune` is true if unreachable objects should be deleted. `prunedAt` is the time of their last deletion. */
  toPrune: z.boolean().optional(),
  prunedAt: EpochMs.optional(),
});
export type LiveRepo = DeepReadonly<z.infer<typeof Live>>;

/**
 * Stored at: repository id, 16 of `[0-9a-z]`
 *
 * State: `{ life: "none" }`, `{ life: "removed", at }`, which prevents a creation and is forgotten a day later, or
 * `{ life: "live", accountId, namespace, name, description, defaultBranch, readOnly, protectedRefs, source, status,
 * failure, progress?, createdAt, updatedAt, lastPushAt, seed, version, generation, packsRemovedVersion, refs,
 * refNamesBytes, packs, packsBytes, treeDepth, lfsObjects, lfsBytes, shallow?, importedBranch?, staged: [{ push,
 * parts, at }], nextUpkeepAt?, toPrune?, prunedAt? }`; `version` grows with each change of the manifest, `generation`
 * where objects may have gone; no more than `treeDepth` directories lie below each other; `shallow`: commits at which
 * an import to a depth ends
 *
 * Row `refs.<0 to 127>`: `{ row, version, refs: { <name>: object id } }`: the refs whose SHA-256 with the seed leads
 * here, and the version that wrote them
 *
 * Row `pack.<sha-256>`: `{ row, version, bytes, indexBytes }`: a pack, and the version that added it
 *
 * Row `lfs.<sha-256>`: `{ row, bytes }`: a large file
 *
 * Row `lock.<id>`: `{ row, path, owner: { id, name }, lockedAt }`: a lock of a large file; `owner.id` is the id of a
 * token
 *
 * Row `token.<id>`: `{ row, id, scope, createdAt, expiresAt, revokedAt, lastUsedAt, secretHash, grantId? }`; the id
 * follows from the hash
 *
 * Row `part.<push>.<n>`: `{ row, commands }`: a part of a push too large for one message, until that is decided, or
 * 10 minutes
 */
export const RepoState = z.discriminatedUnion("life", [
  z.object({ life: z.literal("none") }),
  Live,
  /**
   * Remembers the removal, so that a late message cannot create the repository. A repository that was never created
   * gets this state before its name is given to another. `at` is absent if the repository was removed before this
   * field existed.
   */
  z.object({ life: z.literal("removed"), at: EpochMs.optional() }),
]);
export type RepoState = DeepReadonly<z.infer<typeof RepoState>>;

/** `version` is the manifest's version in which the row was written. */
export const RepoRow = z.discriminatedUnion("row", [
  z.object({ row: z.literal("refs"), version: Version, refs: RefTable }),
  Pack.omit({ sha256: true }).extend({ row: z.literal("pack"), version: Version }),
  RepoToken.extend({ row: z.literal("token"), secretHash: Sha256.meta({ secret: true }) }),
  z.object({ row: z.literal("lfs"), bytes: z.int().min(0) }),
  LfsLock.omit({ id: true }).extend({ row: z.literal("lock") }),
  z.object({ row: z.literal("part"), commands: z.array(z.string()) }),
]);
export type RepoRow = DeepReadonly<z.infer<typeof RepoRow>>;
export type RepoRows = ReadonlyMap<string, RepoRow>;

export const tokenRow = (id: string) => `token.${id}`;
export const partRow = (push: string, part: number) => `part.${push}.${part}`;
export const lockRow = (id: string) => `lock.${id}`;
export const refsRow = (row: number) => `refs.${row}`;

/** Returns all rows of one shape, each with the part of its name after the first dot. */
export function* rowsOf<N extends RepoRow["row"]>(
  rows: RepoRows,
  shape: N,
): Generator<[string, Extract<RepoRow, { row: N }>]> {
  for (const [name, row] of rows) {
    // The cast below is safe, because the row's own field `row` names its shape.
    if (row.row === shape) {
      yield [name.slice(shape.length + 1), row as Extract<RepoRow, { row: N }>];
    }
  }
}

/** Finds, adds and lists the large files of a repository. */
import { ActorError } from "../../../schemas/errors.ts";
import { repoTooLarge } from "../../../schemas/repositories/git-sizes.ts";
import { type HeldLfsObject, type LfsObject, lfsRow } from "../../../schemas/repositories/lfs.ts";
import {
  LFS_NAMED_MAX,
  LFS_OBJECTS_MAX,
  REPO_BYTES_MAX,
} from "../../../schemas/repositories/limits.ts";
import { type LiveRepo, type RepoRow, type RepoRows, rowsOf } from "./repo-state.ts";
import { checkHeld } from "./repo-upkeep.ts";

export const bytesOf = ({ packsBytes, lfsBytes }: LiveRepo) => packsBytes + lfsBytes;

export function findLfsObjects(
  live: LiveRepo,
  rows: RepoRows,
  oids: readonly string[],
  bytesMax = REPO_BYTES_MAX,
) {
  const objects = [...new Set(oids)].flatMap((oid): LfsObject[] => {
    const row = rows.get(lfsRow(oid));
    return row?.row === "lfs" ? [{ oid, bytes: row.bytes }] : [];
  });
  const freeBytes = bytesMax - bytesOf(live);
  const { readOnly, status, lfsObjects } = live;
  return { objects, room: freeBytes, places: LFS_OBJECTS_MAX - lfsObjects, readOnly, status };
}

/** Adds large files to the repository. Files that the repository already has change nothing. */
export function nameLfsObjects(
  live: LiveRepo,
  rows: RepoRows,
  objects: readonly HeldLfsObject[],
  {
    bytesMax = REPO_BYTES_MAX,
    ofImport = false,
  }: { bytesMax?: number | undefined; ofImport?: boolean | undefined } = {},
): { state: LiveRepo; rows?: Record<string, RepoRow> } {
  if (live.readOnly) throw new ActorError("forbidden", "The repository is read-only");
  if (live.status === "importing" && !ofImport) {
    throw new ActorError("import_in_progress", "The repository is being imported");
  }
  if (live.status !== "importing" && ofImport) {
    throw new ActorError("conflict", "Cannot import: the import has ended");
  }
  const added = new Map(
    objects.filter(({ oid }) => !rows.has(lfsRow(oid))).map((object) => [object.oid, object]),
  );
  if (added.size === 0) return { state: live };
  checkHeld([...added.values()]);
  const lfsObjects = live.lfsObjects + added.size;
  if (lfsObjects > LFS_OBJECTS_MAX) {
    const text = `Cannot store: the repository would have more than ${LFS_OBJECTS_MAX} large files`;
    throw new ActorError("limit_reached", text);
  }
  const lfsBytes = [...added.values()].reduce((sum, { bytes }) => sum + bytes, live.lfsBytes);
  const state = { ...live, lfsObjects, lfsBytes };
  if (bytesOf(state) > bytesMax) {
    const text = `Cannot store: ${repoTooLarge(bytesOf(live), bytesMax)}`;
    throw new ActorError("storage_full", text);
  }
  const written = Array.from(added, ([oid, { bytes }]) => {
    return [lfsRow(oid), { row: "lfs" as const, bytes }] as const;
  });
  return { state, rows: Object.fromEntries(written) };
}

export function listLfsObjects(rows: RepoRows, after = "") {
  const all = Array.from(rowsOf(rows, "lfs"), ([oid, { bytes }]) => ({ oid, bytes }))
    .filter(({ oid }) => oid > after)
    .sort((one, other) => (one.oid < other.oid ? -1 : 1));
  return { objects: all.slice(0, LFS_NAMED_MAX), more: all.length > LFS_NAMED_MAX };
}

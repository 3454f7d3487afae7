/** The locks of a repository's large files. Clients respect the locks; a push is not checked against them. */
import { ActorError } from "../../../schemas/errors.ts";
import type { LfsLock, LfsLockOwner } from "../../../schemas/repositories/lfs-lock.ts";
import { LFS_LOCKS_MAX } from "../../../schemas/repositories/limits.ts";
import { type LiveRepo, lockRow, type RepoRow, type RepoRows, rowsOf } from "./repo-state.ts";

interface Change {
  reply: { lock: LfsLock; isNew: boolean };
  rows?: Record<string, RepoRow>;
}

export function createLock(
  live: LiveRepo,
  rows: RepoRows,
  { path, owner }: { path: string; owner: LfsLockOwner },
  { now, newId }: { now: number; newId(): string },
): Change {
  if (live.readOnly) throw new ActorError("forbidden", "The repository is read-only");
  const locks = locksOf(rows);
  const known = locks.find((lock) => lock.path === path);
  if (known) return { reply: { lock: known, isNew: false } };
  if (locks.length >= LFS_LOCKS_MAX) {
    const text = `Cannot lock: the repository has ${LFS_LOCKS_MAX} locks, which is the limit`;
    throw new ActorError("limit_reached", text);
  }
  const lock = { id: newId(), path, owner, lockedAt: now };
  const { id, ...about } = lock;
  return { reply: { lock, isNew: true }, rows: { [lockRow(id)]: { row: "lock", ...about } } };
}

export function listLocks(
  rows: RepoRows,
  {
    path,
    id,
    after = "",
    limit,
  }: {
    path?: string | undefined;
    id?: string | undefined;
    after?: string | undefined;
    limit: number;
  },
) {
  const found = locksOf(rows)
    .filter((lock) => path === undefined || lock.path === path)
    .filter((lock) => id === undefined || lock.id === id)
    .filter((lock) => lock.id > after)
    .sort((one, other) => (one.id < other.id ? -1 : 1));
  return { locks: found.slice(0, limit), more: found.length > limit };
}

export function removeLock(
  rows: RepoRows,
  { id, owner, isForced }: { id: string; owner: LfsLockOwner; isForced: boolean },
) {
  const lock = locksOf(rows).find((one) => one.id === id);
  if (!lock) throw new ActorError("not_found", "Lock not found");
  if (lock.owner.id !== owner.id && !isForced) {
    const text = `Cannot unlock "${lock.path}": "${lock.owner.name}" locked it with another token; --force removes the lock`;
    throw new ActorError("forbidden", text);
  }
  return { reply: { lock }, rows: { [lockRow(id)]: null } };
}

const locksOf = (rows: RepoRows): LfsLock[] =>
  Array.from(rowsOf(rows, "lock"), ([id, { path, owner, lockedAt }]) => ({
    id,
    path,
    owner: { ...owner },
    lockedAt,
  }));

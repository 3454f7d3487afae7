/**
 * Messages of the actor `repo` about locks of large files, as Git LFS defines them: a lock says which token is
 * changing a path.
 */
import { z } from "zod";
import { EpochMs, Id } from "../values.ts";
import {
  LFS_LOCK_NAME_CHARS_MAX,
  LFS_LOCK_PATH_CHARS_MAX,
  LFS_LOCKS_LISTED_MAX,
} from "./limits.ts";
import { RepoAddress } from "./repo-address.ts";

export const LfsLockPath = z
  .string()
  .min(1)
  .max(LFS_LOCK_PATH_CHARS_MAX)
  .refine((path) => path.isWellFormed() && !path.includes("\0"), "Expected a path in UTF-8");

/** `id` is the id of a token; `name` is for people. */
export const LfsLockOwner = z.object({
  id: z.string().min(1).max(64),
  name: z.string().min(1).max(LFS_LOCK_NAME_CHARS_MAX),
});
export type LfsLockOwner = z.infer<typeof LfsLockOwner>;

export const LfsLock = z.object({
  id: Id,
  path: LfsLockPath,
  owner: LfsLockOwner,
  lockedAt: EpochMs,
});
export type LfsLock = z.infer<typeof LfsLock>;

export const lfsLockMessages = {
  /** Locks a path on all branches. If it is locked already, the reply has that lock, and `isNew` is false. */
  createLfsLock: {
    input: z.object({ address: RepoAddress, path: LfsLockPath, owner: LfsLockOwner }),
    reply: z.object({ lock: LfsLock, isNew: z.boolean() }),
  },
  /** Lists locks by id. `after` is the last id that the reader has. */
  listLfsLocks: {
    input: z.object({
      address: RepoAddress,
      path: z.string().optional(),
      id: z.string().optional(),
      after: z.string().optional(),
      limit: z.int().min(1).max(LFS_LOCKS_LISTED_MAX),
    }),
    reply: z.object({ locks: z.array(LfsLock), more: z.boolean() }),
  },
  /** Refuses with `forbidden` if the lock belongs to another token, unless `isForced`. */
  removeLfsLock: {
    input: z.object({
      address: RepoAddress,
      id: z.string(),
      owner: LfsLockOwner,
      isForced: z.boolean(),
    }),
    reply: z.object({ lock: LfsLock }),
  },
};

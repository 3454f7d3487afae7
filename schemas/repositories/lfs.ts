/** Large files of repositories, named as in Git LFS by the SHA-256 of their content. */
import { z } from "zod";
import { Sha256 } from "../values.ts";
import { LFS_OBJECT_BYTES_MAX } from "./limits.ts";

export const LfsObject = z.object({
  oid: Sha256,
  bytes: z.int().min(0).max(LFS_OBJECT_BYTES_MAX),
});
export type LfsObject = z.infer<typeof LfsObject>;

/** A large file that a repository should name. The store keeps the file for at least `heldMs` from now on. */
export const HeldLfsObject = LfsObject.extend({ heldMs: z.int() });
export type HeldLfsObject = z.infer<typeof HeldLfsObject>;

/** The blob that holds a large file. Accounts do not share blobs. */
export const lfsBlob = (accountId: string, oid: string) => `git.${accountId}.lfs.${oid}`;

/** The repository's row that names a large file. The sweep keeps files with such a row. */
export const lfsRow = (oid: string) => `lfs.${oid}`;

/** The parts that all handlers of Git LFS share, and the checks of their requests. */
import { ActorError } from "../../../schemas/errors.ts";
import { checkComplete } from "../../../schemas/repositories/check-complete.ts";
import { lfsObjectBytes } from "../../../schemas/repositories/git-sizes.ts";
import { LfsObject } from "../../../schemas/repositories/lfs.ts";
import type { RepoStatus } from "../../../schemas/repositories/repo.ts";
import type { GitAccess } from "../git/git-access.ts";
import type { Service } from "../git/git-exchange.ts";
import type { GitParts } from "../git-parts.ts";
import type { TransferSlots } from "./transfer-slots.ts";

export interface LfsParts extends Pick<GitParts, "actors" | "lfs" | "sizes" | "storage"> {
  access: GitAccess;
  /** Base of the addresses in responses; defaults to the request's own host. */
  publicUrl?: string | undefined;
  transfers: TransferSlots;
}

/** Returns the git service whose permission a request needs. */
export const serviceFor = (writing: boolean): Service =>
  writing ? "git-receive-pack" : "git-upload-pack";

/** Returns why an object with this id and size cannot be stored, or undefined if it can. */
export function objectFault(
  { sizes }: Pick<LfsParts, "sizes">,
  { oid, size }: { oid: string; size: number },
): string | undefined {
  if (!LfsObject.shape.oid.safeParse(oid).success) {
    return "Expected an oid of 64 lower-case hex characters";
  }
  if (!Number.isSafeInteger(size) || size < 0) return "Expected a size in whole bytes";
  const bytesMax = lfsObjectBytes(sizes);
  return size > bytesMax ? `Expected at most ${bytesMax} bytes` : undefined;
}

/** Refuses writes to a repository that is read-only, or whose first content still arrives. */
export function checkWritable({
  readOnly,
  status,
}: {
  readOnly: boolean;
  status: RepoStatus;
}): void {
  checkComplete(status, "Cannot store");
  if (readOnly) throw new ActorError("forbidden", "The repository is read-only");
}

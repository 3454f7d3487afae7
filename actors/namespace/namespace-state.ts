/** What is kept of a namespace: a small value, and a row for each name. */
import { z } from "zod";
import type { DeepReadonly } from "../../schemas/contract.ts";
import { RepoId } from "../../schemas/git-names.ts";
import { RepoListing } from "../../schemas/namespace.ts";
import { EpochMs } from "../../schemas/values.ts";

export const NamespaceState = z.object({
  accountId: z.string(),
  name: z.string(),
  /** 0 where there is none. */
  createdAt: EpochMs,
  updatedAt: EpochMs,
  /** Repositories removed last, so that removing one again finds it. */
  removed: z.array(z.object({ name: z.string(), id: RepoId })),
});
export type NamespaceState = DeepReadonly<z.infer<typeof NamespaceState>>;

/** By the name in lower case. */
export const NamespaceRow = RepoListing.extend({
  /** When the name was claimed, until the repository says that it is there. */
  claimedAt: EpochMs.optional(),
});
export type NamespaceRow = DeepReadonly<z.infer<typeof NamespaceRow>>;

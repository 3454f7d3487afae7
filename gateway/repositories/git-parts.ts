/** The parts that serve git. */
import type { ActorClient } from "../../actors/runtime/calls/actor-client.ts";
import type { GitSizes } from "../../schemas/repositories/git-sizes.ts";
import type { AnswerPaceLimits } from "../http/answer-pace.ts";
import type { ByteBudget } from "../http/byte-budget.ts";
import type { AnswerCache } from "./cache/answer-cache.ts";
import type { CloneIndexes } from "./cache/clone-index.ts";
import type { ManifestReader } from "./cache/manifest-reader.ts";
import type { RepoCache } from "./cache/repo-cache.ts";
import type { FetchEvents } from "./git/fetch-events.ts";
import type { PushDiscards } from "./git/push-discards.ts";
import type { LfsStore } from "./lfs/lfs-store.ts";
import type { AccountStorage } from "./packs/account-storage.ts";
import type { PackStore } from "./packs/pack-store.ts";
import type { ProcessSlots } from "./process/process-slots.ts";
import type { RepoFinder } from "./repo-finder.ts";

export interface GitParts {
  actors: ActorClient;
  answers: AnswerCache;
  /** Limits the bytes of requests that are in memory. The owner is the account of the repository. */
  bodies: ByteBudget;
  cache: RepoCache;
  cloneIndexes: CloneIndexes;
  fetchEvents: FetchEvents;
  finder: RepoFinder;
  lfs: LfsStore;
  manifests: ManifestReader;
  packs: PackStore;
  /** Speed at which clients must read responses; defaults to the limits of all HTTP responses. */
  pace?: Partial<AnswerPaceLimits> | undefined;
  pushDiscards: PushDiscards;
  sizes: GitSizes;
  slots: ProcessSlots;
  storage: AccountStorage;
}

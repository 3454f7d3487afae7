/** What serving git needs, and what is known of the repository a request is about. */
import type { ActorClient } from "../../actors/runtime/calls/actor-client.ts";
import type { GitSizes } from "../../schemas/repositories/git-sizes.ts";
import type { RepoAddress } from "../../schemas/repositories/repo.ts";
import type { AnswerPaceLimits } from "../http/answer-pace.ts";
import type { AnswerCache } from "./cache/answer-cache.ts";
import type { CloneIndexes } from "./cache/clone-index.ts";
import type { Manifest, ManifestReader } from "./cache/manifest-reader.ts";
import type { RepoCache } from "./cache/repo-cache.ts";
import type { FetchEvents } from "./git/fetch-events.ts";
import type { LfsStore } from "./lfs/lfs-store.ts";
import type { AccountStorage } from "./packs/account-storage.ts";
import type { PackStore } from "./packs/pack-store.ts";
import type { ProcessSlots } from "./process/process-slots.ts";
import type { RepoFinder } from "./repo-finder.ts";

export interface GitParts {
  actors: ActorClient;
  answers: AnswerCache;
  cache: RepoCache;
  cloneIndexes: CloneIndexes;
  fetchEvents: FetchEvents;
  finder: RepoFinder;
  lfs: LfsStore;
  manifests: ManifestReader;
  packs: PackStore;
  /** Of who reads answers; as everywhere where it is not said. */
  pace?: Partial<AnswerPaceLimits> | undefined;
  sizes: GitSizes;
  slots: ProcessSlots;
  storage: AccountStorage;
}

/** A repository that the request's token opens, as it was when the request came. */
export interface OpenedRepo {
  id: string;
  accountId: string;
  address: RepoAddress;
  manifest: Manifest;
}

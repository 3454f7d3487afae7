/** What serving git needs, and what is known of the repository a request is about. */
import type { ActorClient } from "../../actors/runtime/actor-client.ts";
import type { GitSizes } from "../../schemas/git-sizes.ts";
import type { RepoAddress } from "../../schemas/repo.ts";
import type { AnswerPaceLimits } from "../answer-pace.ts";
import type { AccountStorage } from "./account-storage.ts";
import type { AnswerCache } from "./answer-cache.ts";
import type { CloneIndexes } from "./clone-index.ts";
import type { FetchEvents } from "./fetch-events.ts";
import type { LfsStore } from "./lfs-store.ts";
import type { Manifest, ManifestReader } from "./manifest-reader.ts";
import type { PackStore } from "./pack-store.ts";
import type { ProcessSlots } from "./process-slots.ts";
import type { RepoCache } from "./repo-cache.ts";
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

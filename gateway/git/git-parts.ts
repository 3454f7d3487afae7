/** What serving git needs, and what is known of the repository a request is about. */
import type { ActorClient } from "../../actors/runtime/actor-client.ts";
import type { RepoAddress } from "../../schemas/repo.ts";
import type { Manifest, ManifestReader } from "./manifest-reader.ts";
import type { PackStore } from "./pack-store.ts";
import type { ProcessSlots } from "./process-slots.ts";
import type { RepoCache } from "./repo-cache.ts";
import type { RepoFinder } from "./repo-finder.ts";

export interface GitParts {
  actors: ActorClient;
  cache: RepoCache;
  finder: RepoFinder;
  manifests: ManifestReader;
  packs: PackStore;
  slots: ProcessSlots;
}

/** A repository that the request's token opens, as it was when the request came. */
export interface OpenedRepo {
  id: string;
  accountId: string;
  address: RepoAddress;
  manifest: Manifest;
}

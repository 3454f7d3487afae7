/** A repository that a request's token opens. */
import type { RepoAddress } from "../../schemas/repositories/repo.ts";
import type { Manifest } from "./cache/manifest-reader.ts";

/** The repository as it was when the request arrived. */
export interface OpenedRepo {
  id: string;
  accountId: string;
  address: RepoAddress;
  manifest: Manifest;
}

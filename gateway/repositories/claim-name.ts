/**
 * Claims and frees the names of repositories. A name is freed only for the id that holds it, and only when the
 * repository with this id can no longer accept a push.
 */
import type { ActorClient } from "../../actors/runtime/calls/actor-client.ts";
import { ActorError } from "../../schemas/errors.ts";
import { namespaceKey } from "../../schemas/repositories/git-names.ts";
import { namespace, type RepoListing } from "../../schemas/repositories/namespace.ts";
import { type RepoAddress, repo } from "../../schemas/repositories/repo.ts";

/** Claims a name for a new repository. Refuses with `conflict` if another repository has the name. */
export async function claimName(
  actors: ActorClient,
  { accountId, namespace: space }: RepoAddress,
  listing: RepoListing,
): Promise<void> {
  const key = namespaceKey(accountId, space);
  const claim = () => actors.call(namespace, key, "claim", { accountId, name: space, listing });
  try {
    await claim();
  } catch (error) {
    if (!isRefusal(error, "conflict")) throw error;
    if (!(await freeExpiredClaim(actors, key, listing.name))) throw error;
    await claim();
  }
}

/** Frees a name that was claimed long ago, if its repository was never created. Returns false if the name is in use. */
async function freeExpiredClaim(actors: ActorClient, key: string, name: string): Promise<boolean> {
  try {
    const { id, claimExpired = false } = await actors.call(namespace, key, "find", { name });
    if (!claimExpired) return false;
    // From here on, the former creation cannot succeed any more, however late it arrives.
    await actors.call(repo, id, "refuseCreation", {});
    await actors.call(namespace, key, "release", { name, id });
    return true;
  } catch (error) {
    if (isRefusal(error, "conflict") || isRefusal(error, "not_found")) return false;
    throw error;
  }
}

/** Frees the name of a repository whose creation was never sent. */
export async function releaseClaim(
  actors: ActorClient,
  { accountId, namespace: space, name }: RepoAddress,
  id: string,
): Promise<void> {
  await actors.call(namespace, namespaceKey(accountId, space), "release", { name, id });
}

/** Removes the repository with this name, or the one that had it last, and then frees the name. Returns its id. */
export async function removeNamed(
  actors: ActorClient,
  address: RepoAddress,
): Promise<{ id: string }> {
  const { accountId, namespace: space, name } = address;
  const key = namespaceKey(accountId, space);
  const { id } = await actors.call(namespace, key, "find", { name, orRemoved: true });
  // If the name were free first, a gateway that remembers this id could still push to the removed repository after
  // another one has got the name.
  await actors.call(repo, id, "remove", {});
  await actors.call(namespace, key, "release", { name, id });
  return { id };
}

const isRefusal = (error: unknown, code: "conflict" | "not_found") =>
  error instanceof ActorError && error.code === code;

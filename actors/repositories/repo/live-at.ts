/** Narrows the state of a repository to one that exists at an address. */
import { ActorError } from "../../../schemas/errors.ts";
import { folded } from "../../../schemas/repositories/git-names.ts";
import type { RepoAddress } from "../../../schemas/repositories/repo.ts";
import type { LiveRepo, RepoState } from "./repo-state.ts";

/** Refuses with the same error if the repository never existed, was removed, or has another address. */
export function liveAt(
  state: RepoState,
  address: { [part in keyof RepoAddress]?: string | undefined } = {},
): LiveRepo {
  const { accountId, namespace: space, name } = address;
  const found =
    state.life === "live" &&
    (accountId === undefined || accountId === state.accountId) &&
    (space === undefined || folded(space) === folded(state.namespace)) &&
    (name === undefined || folded(name) === folded(state.name));
  if (!found) throw new ActorError("not_found", "Repository not found");
  return state;
}

/**
 * Removes a repository, or makes sure that it is never created. A name may be given to another repository only after
 * that.
 */
import { envelope } from "../../../schemas/contract.ts";
import { namespaceKey } from "../../../schemas/repositories/git-names.ts";
import { CLEAR_PAUSE_MS } from "../../../schemas/repositories/limits.ts";
import { namespace } from "../../../schemas/repositories/namespace.ts";
import type { RepoAddress } from "../../../schemas/repositories/repo.ts";
import { event } from "./repo-event-messages.ts";
import { type LiveRepo, type RepoRows, type RepoState, rowsOf } from "./repo-state.ts";

/** Removes the repository in any state. If it does not exist, a late message can then not create it. */
export function removed(state: RepoState, id: string, now: number) {
  const sends =
    state.life === "live"
      ? [repoRemoved(state, id), event(state, id, now, { type: "deleted" })]
      : [];
  return {
    state: { life: "removed" as const, at: now },
    send: sends,
    remind: { dropStaged: null, giveUp: null, upkeepDue: null, clearRows: now + CLEAR_PAUSE_MS },
  };
}

/**
 * Ends a creation whose gateway has reported a failure. The creation may have succeeded nevertheless, and another
 * client may have used the repository. Such a repository stays.
 */
export function endFailedCreation(
  state: RepoState,
  rows: RepoRows,
  address: RepoAddress,
  { key, now }: { key: string; now: number },
) {
  if (state.life === "live" && !isUntouched(state, rows)) return { state };
  if (state.life === "live") return removed(state, key, now);
  const send = [repoRemoved(address, key)];
  return state.life === "removed" ? { state, send } : { ...removed(state, key, now), send };
}

/** True if nothing has changed since the creation. The repository then has one token at most. */
function isUntouched({ version, lfsObjects, staged }: LiveRepo, rows: RepoRows): boolean {
  const tokens = [...rowsOf(rows, "token")].length;
  const locks = [...rowsOf(rows, "lock")].length;
  return version === 1 && lfsObjects === 0 && staged.length === 0 && tokens <= 1 && locks === 0;
}

function repoRemoved({ accountId, namespace: space, name }: RepoAddress, id: string) {
  return envelope(namespace, namespaceKey(accountId, space), "repoRemoved", { id, name });
}

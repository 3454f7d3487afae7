/** Keeps a namespace: which repository has which name, and what a listing shows of each. */
import { envelope } from "../../schemas/contract.ts";
import { ActorError } from "../../schemas/errors.ts";
import { NAME_CLAIM_MS, NAMESPACE_REPOS_MAX, REMOVED_NAMES_MAX } from "../../schemas/git-limits.ts";
import { folded } from "../../schemas/git-names.ts";
import { namespace } from "../../schemas/namespace.ts";
import { repo } from "../../schemas/repo.ts";
import { defineActor } from "../runtime/define-actor.ts";
import { listRepos } from "./list-repos.ts";
import { NamespaceRow, NamespaceState } from "./namespace-state.ts";

export const namespaceActor = defineActor(namespace, {
  state: NamespaceState,
  initial: { accountId: "", name: "", createdAt: 0, updatedAt: 0, removed: [] },
  rows: NamespaceRow,

  handlers: {
    create(state, { accountId, name }, { now }) {
      if (state.createdAt > 0) throw new ActorError("conflict", "Namespace already exists");
      const created = { ...state, accountId, name, createdAt: now, updatedAt: now };
      return { state: created, reply: entryOf(created, 0) };
    },

    get(state, _input, { rows }) {
      return { state, reply: entryOf(checkMade(state), rows.size) };
    },

    remove(state, _input, { rows }) {
      checkMade(state);
      if (rows.size > 0) {
        const text = `Cannot delete namespace: it has ${rows.size} repositories`;
        throw new ActorError("conflict", text);
      }
      return { state: { ...state, createdAt: 0, updatedAt: 0, removed: [] }, reply: {} };
    },

    claim(state, { accountId, name, listing }, { now, rows }) {
      const row = folded(listing.name);
      const known = rows.get(row);
      if (known?.id === listing.id) return { state, reply: {} };
      const isFree = !known || (known.claimedAt ?? now) + NAME_CLAIM_MS <= now;
      if (!isFree) throw new ActorError("conflict", `repo already exists: ${listing.name}`);
      if (!known && rows.size >= NAMESPACE_REPOS_MAX) {
        const text = `Cannot create repository: the namespace has ${NAMESPACE_REPOS_MAX}, which is the limit`;
        throw new ActorError("limit_reached", text);
      }
      const made = state.createdAt > 0 ? state : { ...state, accountId, name, createdAt: now };
      return {
        state: { ...made, updatedAt: now },
        rows: { [row]: { ...listing, claimedAt: now } },
        // Whose claim it was may come to be late: its name is gone.
        send: known ? [envelope(repo, known.id, "nameReleased", {})] : [],
        reply: {},
      };
    },

    find(state, { name }, { rows }) {
      const known = rows.get(folded(name));
      if (!known) throw new ActorError("not_found", "Repository not found");
      return { state, reply: { id: known.id } };
    },

    release(state, { name }, { now, rows }) {
      const row = folded(name);
      const known = rows.get(row);
      const earlier = state.removed.find((removed) => removed.name === row);
      if (known) {
        const removed = rememberRemoved(state, row, known.id);
        return {
          state: { ...state, removed, updatedAt: now },
          rows: { [row]: null },
          send: [envelope(repo, known.id, "nameReleased", {})],
          reply: { id: known.id },
        };
      }
      if (!earlier) throw new ActorError("not_found", "Repository not found");
      return { state, reply: { id: earlier.id } };
    },

    list(state, query, { rows }) {
      return { state, reply: listRepos(rows.values(), query) };
    },

    repoChanged(state, listing, { rows }) {
      const row = folded(listing.name);
      const known = rows.get(row);
      // Its name was given to another, or up, before it came to be.
      if (known?.id !== listing.id) {
        return { state, send: [envelope(repo, listing.id, "nameReleased", {})] };
      }
      return { state, rows: { [row]: listing } };
    },

    repoRemoved(state, { id, name }, { now, rows }) {
      const row = folded(name);
      if (rows.get(row)?.id !== id) return { state };
      const removed = rememberRemoved(state, row, id);
      return { state: { ...state, removed, updatedAt: now }, rows: { [row]: null } };
    },
  },
});

function checkMade(state: NamespaceState): NamespaceState {
  if (state.createdAt === 0) throw new ActorError("not_found", "Namespace not found");
  return state;
}

function entryOf({ accountId, name, createdAt, updatedAt }: NamespaceState, repoCount: number) {
  return { accountId, name, createdAt, updatedAt, repoCount };
}

function rememberRemoved({ removed }: NamespaceState, name: string, id: string) {
  const others = removed.filter((other) => other.name !== name);
  return [...others, { name, id }].slice(-REMOVED_NAMES_MAX);
}

/** Keeps a namespace: the names of its repositories, and each repository's entry in listings. */
import { envelope } from "../../../schemas/contract.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { folded } from "../../../schemas/repositories/git-names.ts";
import { NAMESPACE_REPOS_MAX } from "../../../schemas/repositories/limits.ts";
import { namespace } from "../../../schemas/repositories/namespace.ts";
import { namespaceList } from "../../../schemas/repositories/namespace-list.ts";
import { repo } from "../../../schemas/repositories/repo.ts";
import { defineActor } from "../../runtime/kinds/define-actor.ts";
import { listRepos } from "./list-repos.ts";
import { Names, NamespaceRow, NamespaceState } from "./namespace-state.ts";

/** Limit for the names of removed repositories that a namespace remembers, so that a repeated removal succeeds. */
export const REMOVED_NAMES_MAX = 200;
/**
 * After this time, a claim whose repository has not reported that it exists has expired. The next creation of the name
 * then asks the repository, and takes the name if the repository was never created.
 */
export const NAME_CLAIM_MS = 60_000;

/**
 * Stored at: account id, `.`, name in lower case
 *
 * State: `{ accountId, name, createdAt, updatedAt, removed: [{ name, id }], claims? }`; `createdAt` 0 is none; the
 * last 200 names that were removed; up to 16 names whose repositories are about to be there, as their rows would be.
 * A row for each repository, by its name in lower case: what a listing shows (`{ id, name, description,
 * defaultBranch, readOnly, source, status, createdAt, updatedAt, lastPushAt }`), and `claimedAt` until the repository
 * says that it is there
 */
export const namespaceActor = defineActor(namespace, {
  state: NamespaceState,
  initial: { accountId: "", name: "", createdAt: 0, updatedAt: 0, removed: [] },
  rows: NamespaceRow,

  handlers: {
    create(state, { accountId, name }, { now }) {
      if (state.createdAt > 0) throw new ActorError("conflict", "Namespace already exists");
      const created = { ...state, accountId, name, createdAt: now, updatedAt: now };
      return { state: created, reply: entryOf(created, 0), send: [toldList(created, 0)] };
    },

    get(state, _input, { rows }) {
      return { state, reply: entryOf(checkMade(state), new Names(state, rows).size) };
    },

    remove(state, _input, { rows }) {
      checkMade(state);
      const { size } = new Names(state, rows);
      if (size > 0) {
        const text = `Cannot delete namespace: it has ${size} repositories`;
        throw new ActorError("conflict", text);
      }
      return {
        state: { ...state, createdAt: 0, updatedAt: 0, removed: [] },
        reply: {},
        send: [envelope(namespaceList, state.accountId, "removed", { name: state.name })],
      };
    },

    claim(state, { accountId, name, listing }, { now, rows }) {
      const names = new Names(state, rows);
      const row = folded(listing.name);
      const known = names.get(row);
      if (known?.id === listing.id) return { state, reply: {} };
      // An expired claim is refused too. Its repository may exist and hold pushes, although its report is late.
      if (known) throw new ActorError("conflict", `repo already exists: ${listing.name}`);
      if (names.size >= NAMESPACE_REPOS_MAX) {
        const text = `Cannot create repository: the namespace has ${NAMESPACE_REPOS_MAX}, which is the limit`;
        throw new ActorError("limit_reached", text);
      }
      const isNew = state.createdAt === 0;
      const made = isNew ? { ...state, accountId, name, createdAt: now } : state;
      const claimed = { ...made, updatedAt: now };
      return {
        ...names.claim(claimed, row, { ...listing, claimedAt: now }),
        // Reports a new namespace to the account's list. The namespace counts its new repository there only when the
        // repository exists.
        send: isNew ? [toldList(claimed, names.size)] : [],
        reply: {},
      };
    },

    find(state, { name, orRemoved = false }, { now, rows }) {
      const row = folded(name);
      const known = new Names(state, rows).get(row);
      const removed = orRemoved ? lastRemoved(state, row) : undefined;
      const { id } = known ?? removed ?? {};
      if (id === undefined) throw new ActorError("not_found", "Repository not found");
      const { claimedAt = now } = known ?? {};
      const claimExpired = claimedAt + NAME_CLAIM_MS <= now;
      return { state, reply: { id, ...(claimExpired && { claimExpired }) } };
    },

    release(state, { name, id }, { now, rows }) {
      const row = folded(name);
      const names = new Names(state, rows);
      const known = names.get(row);
      if (id !== undefined && known?.id !== id) return { state, reply: { id } };
      if (known) {
        const removed = rememberRemoved(state, row, known.id);
        const released = { ...state, removed, updatedAt: now };
        return {
          ...names.put(released, row, null),
          send: [envelope(repo, known.id, "nameReleased", {}), toldList(released, names.size - 1)],
          reply: { id: known.id },
        };
      }
      const earlier = lastRemoved(state, row);
      if (!earlier) throw new ActorError("not_found", "Repository not found");
      return { state, reply: { id: earlier.id } };
    },

    list(state, query, { rows }) {
      return { state, reply: listRepos(new Names(state, rows).values(), query) };
    },

    repoChanged(state, listing, { rows }) {
      const row = folded(listing.name);
      const names = new Names(state, rows);
      const known = names.get(row);
      // Before this repository was created, its name was released or given to another repository. The message tells
      // this repository that it has lost the name.
      if (known?.id !== listing.id) {
        return { state, send: [envelope(repo, listing.id, "nameReleased", {})] };
      }
      const changed = names.put(state, row, listing);
      return known.claimedAt === undefined
        ? changed
        : { ...changed, send: [toldList(state, names.size)] };
    },

    repoRemoved(state, { id, name }, { now, rows }) {
      const row = folded(name);
      const names = new Names(state, rows);
      if (names.get(row)?.id !== id) return { state };
      const removed = rememberRemoved(state, row, id);
      const changed = { ...state, removed, updatedAt: now };
      return { ...names.put(changed, row, null), send: [toldList(changed, names.size - 1)] };
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

function toldList({ accountId, name, createdAt, updatedAt }: NamespaceState, repoCount: number) {
  const entry = { name, repoCount, createdAt, updatedAt };
  return envelope(namespaceList, accountId, "changed", entry);
}

const lastRemoved = ({ removed }: NamespaceState, name: string) =>
  removed.find((other) => other.name === name);

function rememberRemoved({ removed }: NamespaceState, name: string, id: string) {
  const others = removed.filter((other) => other.name !== name);
  return [...others, { name, id }].slice(-REMOVED_NAMES_MAX);
}

/** Keeps the list of an account's namespaces, and limits their number. */

import { ActorError } from "../../../schemas/errors.ts";
import { folded } from "../../../schemas/repositories/git-names.ts";
import { NAMESPACES_MAX } from "../../../schemas/repositories/limits.ts";
import { namespaceList } from "../../../schemas/repositories/namespace-list.ts";
import { defineActor } from "../../runtime/kinds/define-actor.ts";
import { NamespaceListRow, NamespaceListState } from "./namespace-list-state.ts";

/** How long the list shows an announced namespace that is never created. */
export const NAMESPACE_ANNOUNCED_MS = 60_000;

/**
 * Stored at: account id
 *
 * State: none of its own.
 *
 * Row `<namespace's name in lower case>`: `{ name, repoCount, createdAt, updatedAt }` of its last report, and
 * `announcedAt` until its first report
 */
export const namespaceListActor = defineActor(namespaceList, {
  state: NamespaceListState,
  initial: {},
  rows: NamespaceListRow,

  handlers: {
    announce(state, { name }, { now, rows }) {
      const row = folded(name);
      const known = rows.get(row);
      if (known && isListed(known, now)) return { state, reply: {} };
      const expired = [...rows].find(([, entry]) => !isListed(entry, now))?.[0];
      if (rows.size - (expired === undefined ? 0 : 1) >= NAMESPACES_MAX) {
        const text = `Cannot create namespace: the account has ${NAMESPACES_MAX}, which is the limit`;
        throw new ActorError("limit_reached", text);
      }
      const announced = { name, repoCount: 0, createdAt: now, updatedAt: now, announcedAt: now };
      return {
        state,
        // At most one expired announcement is deleted here, to make room for the new name.
        rows: { ...(expired !== undefined && { [expired]: null }), [row]: announced },
        reply: {},
      };
    },

    list(state, { limit, after }, { now, rows }) {
      const listed = [...rows].filter(([, entry]) => isListed(entry, now));
      const from = after === undefined ? undefined : folded(after);
      const beyond = listed
        .filter(([name]) => from === undefined || name > from)
        .sort(([one], [other]) => (one < other ? -1 : 1));
      return {
        state,
        reply: {
          namespaces: beyond.slice(0, limit).map(([, entry]) => entry),
          more: beyond.length > limit,
          total: listed.length,
        },
      };
    },

    changed: (state, entry) => ({ state, rows: { [folded(entry.name)]: entry } }),

    removed(state, { name }, { rows }) {
      const row = folded(name);
      return rows.has(row) ? { state, rows: { [row]: null } } : { state };
    },
  },
});

const isListed = ({ announcedAt }: NamespaceListRow, now: number) =>
  announcedAt === undefined || now < announcedAt + NAMESPACE_ANNOUNCED_MS;

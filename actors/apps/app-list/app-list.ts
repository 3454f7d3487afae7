/** Keeps the list of an account's apps, and limits their number. */

import { type AppEntry, appList } from "../../../schemas/apps/app-list.ts";
import { APPS_MAX } from "../../../schemas/apps/limits.ts";
import type { DeepReadonly } from "../../../schemas/contract.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { defineActor } from "../../runtime/kinds/define-actor.ts";
import { AppListState } from "./app-list-state.ts";

/**
 * Stored at: account id
 *
 * State: `{ apps: [{ name, createdAt, updatedAt, serving? }] }`
 */
export const appListActor = defineActor(appList, {
  state: AppListState,
  initial: { apps: [] },

  handlers: {
    admit(state, { name }, { now }) {
      if (state.apps.some((one) => one.name === name)) return { state, reply: {} };
      if (state.apps.length >= APPS_MAX) {
        const text = `Cannot deploy app "${name}": the account has ${APPS_MAX}, which is the limit`;
        throw new ActorError("limit_reached", text);
      }
      const apps = [...state.apps, { name, createdAt: now, updatedAt: now }];
      return { state: { apps: apps.toSorted(byName) }, reply: {} };
    },

    removed(state, { name }) {
      const apps = state.apps.filter((one) => one.name !== name);
      return { state: apps.length === state.apps.length ? state : { apps } };
    },

    changed(state, { name, serving, at, createdAt = at }) {
      const known = state.apps.find((one) => one.name === name) ?? { name, createdAt };
      const changed = { ...known, updatedAt: at, ...(serving !== undefined && { serving }) };
      const others = state.apps.filter((one) => one.name !== name);
      return { state: { apps: [...others, changed].toSorted(byName) } };
    },

    list: (state) => ({ state, reply: { apps: state.apps } }),
  },
});

const byName = (one: DeepReadonly<AppEntry>, other: DeepReadonly<AppEntry>) =>
  one.name < other.name ? -1 : 1;

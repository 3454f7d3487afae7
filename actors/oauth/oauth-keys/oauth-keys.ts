/** Decides which of several keys that are offered at once is the next, and keeps old ones while they are needed. */

import { oauthKeys } from "../../../schemas/oauth/oauth-keys.ts";
import { KEY_KEPT_MS, KEY_LEAD_MS } from "../../../schemas/oauth/oauth-server-limits.ts";
import { defineActor } from "../../runtime/kinds/define-actor.ts";
import { OAuthKeysState } from "./oauth-keys-state.ts";

export const oauthKeysActor = defineActor(oauthKeys, {
  state: OAuthKeysState,
  initial: { keys: null },

  handlers: {
    get: (state) => ({ state, reply: state }),

    offer(state, { after, key, secret }, { now }) {
      const { keys } = state;
      const known = keys?.signing ?? [];
      if (keys && known.at(-1)?.kid !== after) return { state, reply: keys };
      const all = [...known, { ...key, createdAt: now }];
      // One has signed its last when the next one has had its lead.
      const signing = all.filter((_key, index) => {
        const next = all[index + 1];
        return !next || now < next.createdAt + KEY_LEAD_MS + KEY_KEPT_MS;
      });
      const next = { signing, secret: keys?.secret ?? secret };
      return { state: { keys: next }, reply: next, live: { change: "keys" as const } };
    },
  },
});

/**
 * Stores the keys of the authorization server. If several gateways offer a next key at the same time, it accepts the
 * first one. It keeps old keys while clients need them.
 */

import { KEY_LEAD_MS } from "../../../schemas/oauth/limits.ts";
import { oauthKeys } from "../../../schemas/oauth/oauth-keys.ts";
import { defineActor } from "../../runtime/kinds/define-actor.ts";
import { OAuthKeysState } from "./oauth-keys-state.ts";

/** How long a key stays published after its last signature: much longer than any ID token is valid. */
export const KEY_KEPT_MS = 7 * 86_400_000;

/**
 * Stored at: `main`
 *
 * State: `{ keys: { signing: [{ kid, jwk, createdAt }], secret } }`: private keys, not encrypted. A key is kept for 8
 * days after its successor is made: one day until that one signs, and 7 days after that
 */
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
      // A key stops signing when its successor begins to sign, KEY_LEAD_MS after the successor was created.
      const signing = all.filter((_key, index) => {
        const next = all[index + 1];
        return !next || now < next.createdAt + KEY_LEAD_MS + KEY_KEPT_MS;
      });
      const next = { signing, secret: keys?.secret ?? secret };
      return { state: { keys: next }, reply: next, live: { change: "keys" as const } };
    },
  },
});

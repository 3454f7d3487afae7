/** Stores a copy of an OAuth client's logo, so that our pages load nothing from other sites. */
import type { DeepReadonly } from "../../../schemas/contract.ts";
import { envelope } from "../../../schemas/contract.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { clientLogo } from "../../../schemas/oauth/client-logo.ts";
import { logoFetch } from "../../../schemas/oauth/logo-fetch.ts";
import { defineActor } from "../../runtime/kinds/define-actor.ts";
import { ClientLogoState } from "./client-logo-state.ts";

/**
 * The pauses before each further attempt to fetch a logo. A server that is down when the client is registered usually
 * works again a day later.
 */
export const LOGO_RETRIES_MS = [60_000, 3_600_000, 86_400_000] as const;

/**
 * Stored at: client_id
 *
 * State: `{ uri?, attempt, copy?: { type, hash, base64 } }`: our copy of the client's logo, at most 128 KiB, and how
 * often its address was fetched; forgotten with the client or its logo
 */
export const clientLogoActor = defineActor(clientLogo, {
  state: ClientLogoState,
  initial: { attempt: 0 },

  handlers: {
    follow(state, { uri }, { key }) {
      if (uri === null) return state.uri === undefined ? { state } : { forget: true as const };
      // If the address is the same, the old copy stays while the logo is fetched again.
      const copy = state.uri === uri ? state.copy : undefined;
      return fetchNext({ uri, attempt: 0, ...(copy && { copy }) }, uri, key);
    },

    fetched(state, { uri, attempt, logo }, { now }) {
      // Ignore a report about an earlier address, or about an attempt that was already reported.
      if (state.uri !== uri || state.attempt !== attempt) return { state };
      if (logo) return { state: { ...state, copy: logo }, remind: { retry: null } };
      const pause = LOGO_RETRIES_MS[attempt - 1];
      return { state, remind: { retry: pause === undefined ? null : now + pause } };
    },

    retry(state, _input, { key }) {
      return state.uri === undefined ? { state } : fetchNext(state, state.uri, key);
    },

    find(state, { uri }) {
      const hash = state.uri === uri ? state.copy?.hash : undefined;
      return { state, reply: hash === undefined ? {} : { hash } };
    },

    read(state, { hash }) {
      if (state.copy?.hash !== hash) {
        throw new ActorError("not_found", "Cannot find logo: no logo has this hash");
      }
      return { state, reply: state.copy };
    },
  },
});

function fetchNext(state: DeepReadonly<ClientLogoState>, uri: string, key: string) {
  const attempt = state.attempt + 1;
  return {
    state: { ...state, attempt },
    send: [envelope(logoFetch, key, "fetch", { uri, attempt })],
    remind: { retry: null },
  };
}

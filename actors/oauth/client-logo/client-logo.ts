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
/** Time after which a fetch without a result counts as lost. A full lane takes one worker about 20 minutes. */
export const LOGO_FETCH_LOST_MS = 3_600_000;

/**
 * Stored at: client_id
 *
 * State: `{ uri?, attempt, fetching?: { uri, attempt, queuedAt }, copy?: { type, hash, base64 } }`: our copy of the
 * client's logo, at most 128 KiB, how often its address was fetched, and the fetch that has no result yet; forgotten
 * with the client or its logo, after the result of such a fetch
 */
export const clientLogoActor = defineActor(clientLogo, {
  state: ClientLogoState,
  initial: { attempt: 0 },

  handlers: {
    follow(state, { uri }, context) {
      if (uri === null && state.uri === undefined) return { state };
      // If the address is the same, the old copy stays while the logo is fetched again.
      const copy = state.uri === uri ? state.copy : undefined;
      const next = { attempt: 0, ...(uri !== null && { uri }), ...(copy && { copy }) };
      const { fetching } = state;
      if (!fetching) return fetchNext(next, context);
      const lostAt = fetching.queuedAt + LOGO_FETCH_LOST_MS;
      if (context.now >= lostAt) return fetchNext(next, context);
      // The lane is shared by all accounts, so a client has one task in it. Its result starts the next fetch.
      return { state: { ...next, fetching }, remind: { retry: lostAt } };
    },

    fetched(state, { uri, attempt, logo }, context) {
      const { fetching, ...settled } = state;
      if (state.uri === uri && state.attempt === attempt) {
        if (logo) return { state: { ...settled, copy: logo }, remind: { retry: null } };
        const pause = LOGO_RETRIES_MS[attempt - 1];
        const retry = pause === undefined ? null : context.now + pause;
        return { state: settled, remind: { retry } };
      }
      // The client set its logo during this fetch.
      if (fetching?.uri === uri && fetching.attempt === attempt) return fetchNext(settled, context);
      // Ignore a report about an earlier address, or about an attempt that was already reported.
      return { state };
    },

    retry(state, _input, context) {
      const { fetching, ...settled } = state;
      return state.uri === undefined && !fetching ? { state } : fetchNext(settled, context);
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

/** Queues the next fetch of the address, or forgets a client that has no logo any more. */
function fetchNext(
  state: DeepReadonly<Omit<ClientLogoState, "fetching">>,
  { key, now }: { key: string; now: number },
) {
  const { uri } = state;
  if (uri === undefined) return { forget: true as const };
  const attempt = state.attempt + 1;
  return {
    state: { ...state, attempt, fetching: { uri, attempt, queuedAt: now } },
    send: [envelope(logoFetch, key, "fetch", { uri, attempt })],
    remind: { retry: null },
  };
}

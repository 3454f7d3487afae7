/** Stores the list of an account's OAuth clients, and limits their number. */
import { ActorError } from "../../../schemas/errors.ts";
import {
  OAUTH_CLIENTS_PER_ACCOUNT_MAX,
  OAUTH_CLIENTS_PER_DAY_MAX,
} from "../../../schemas/oauth/limits.ts";
import { oauthClientList } from "../../../schemas/oauth/oauth-client-list.ts";
import { defineActor } from "../../runtime/kinds/define-actor.ts";
import { OAuthClientListState } from "./oauth-client-list-state.ts";

/**
 * Time after which a reservation without a client expires. No call lives this long, so the client will not be created
 * any more.
 */
export const OAUTH_CLIENT_RESERVED_MS = 5 * 60_000;
const DAY_MS = 86_400_000;

/**
 * Stored at: account id
 *
 * State: `{ next, lately?: { since, reservations }, clients: [{ clientId, number, reservedAt? }] }`; a reservation
 * without a client expires after 5 minutes; `lately` counts the reservations of the day that began then
 */
export const oauthClientListActor = defineActor(oauthClientList, {
  state: OAuthClientListState,
  initial: { next: 0, clients: [] },

  handlers: {
    reserve(state, { clientId }, { now }) {
      if (state.clients.some((client) => client.clientId === clientId)) return { state, reply: {} };
      // Removes expired reservations: the gateway that made them died before it created the client.
      const clients = state.clients.filter(
        ({ reservedAt }) => reservedAt === undefined || now < reservedAt + OAUTH_CLIENT_RESERVED_MS,
      );
      if (clients.length >= OAUTH_CLIENTS_PER_ACCOUNT_MAX) {
        throw new ActorError(
          "limit_reached",
          `Cannot create OAuth client: the account has ${OAUTH_CLIENTS_PER_ACCOUNT_MAX}, which is the limit`,
        );
      }
      const lately = countedReservation(state.lately, now);
      const client = { clientId, number: state.next, reservedAt: now };
      return { state: { next: state.next + 1, lately, clients: [...clients, client] }, reply: {} };
    },

    created(state, { clientId }) {
      const known = state.clients.find((client) => client.clientId === clientId);
      if (known && known.reservedAt === undefined) return { state };
      if (known) {
        const made = { clientId, number: known.number };
        const clients = state.clients.map((client) => (client === known ? made : client));
        return { state: { ...state, clients } };
      }
      // The reservation had expired, but the client was created after all.
      const clients = [...state.clients, { clientId, number: state.next }];
      return { state: { ...state, next: state.next + 1, clients } };
    },

    removed(state, { clientId }) {
      const clients = state.clients.filter((client) => client.clientId !== clientId);
      return { state: clients.length < state.clients.length ? { ...state, clients } : state };
    },

    list(state, { cursor, count }) {
      const before = cursor === undefined ? Number.POSITIVE_INFINITY : numberOf(cursor);
      const newestFirst = state.clients.filter(({ number }) => number < before).toReversed();
      const shown = newestFirst.slice(0, count);
      const last = newestFirst.length > count ? shown.at(-1) : undefined;
      return {
        state,
        reply: {
          clientIds: shown.map(({ clientId }) => clientId),
          ...(last !== undefined && { cursor: String(last.number) }),
        },
      };
    },
  },
});

/** Counts one more reservation of the day. Throws `rate_limited` if the limit of the day is reached. */
function countedReservation(lately: OAuthClientListState["lately"], now: number) {
  const isSameDay = lately !== undefined && now < lately.since + DAY_MS;
  const { since, reservations } = isSameDay ? lately : { since: now, reservations: 0 };
  if (reservations >= OAUTH_CLIENTS_PER_DAY_MAX) {
    const text = `Cannot create OAuth client: the account created ${OAUTH_CLIENTS_PER_DAY_MAX} within a day, which is the limit`;
    const retryAfterS = Math.ceil((since + DAY_MS - now) / 1_000);
    throw new ActorError("rate_limited", text, { retryAfterS });
  }
  return { since, reservations: reservations + 1 };
}

function numberOf(cursor: string): number {
  if (/^\d{1,15}$/.test(cursor)) return Number(cursor);
  throw new ActorError(
    "invalid_request",
    "Cannot list OAuth clients: the cursor is not one of this list",
  );
}

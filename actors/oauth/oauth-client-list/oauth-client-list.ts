/** Stores the list of an account's OAuth clients, and limits their number. */
import { ActorError } from "../../../schemas/errors.ts";
import { OAUTH_CLIENTS_PER_ACCOUNT_MAX } from "../../../schemas/oauth/limits.ts";
import { oauthClientList } from "../../../schemas/oauth/oauth-client-list.ts";
import { defineActor } from "../../runtime/kinds/define-actor.ts";
import { OAuthClientListState } from "./oauth-client-list-state.ts";

/**
 * Time after which a reservation without a client expires. No call lives this long, so the client will not be created
 * any more.
 */
export const OAUTH_CLIENT_RESERVED_MS = 5 * 60_000;

/**
 * Stored at: account id
 *
 * State: `{ next, clients: [{ clientId, number, reservedAt? }] }`; a reservation without a client expires after 5
 * minutes
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
      const client = { clientId, number: state.next, reservedAt: now };
      return { state: { next: state.next + 1, clients: [...clients, client] }, reply: {} };
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
      return { state: { next: state.next + 1, clients } };
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

function numberOf(cursor: string): number {
  if (/^\d{1,15}$/.test(cursor)) return Number(cursor);
  throw new ActorError(
    "invalid_request",
    "Cannot list OAuth clients: the cursor is not one of this list",
  );
}

/** Stores the consent of a person for each client, and revokes the client's grants when the person withdraws it. */
import { type DeepReadonly, envelope } from "../../../schemas/contract.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { type AllowedClient, grantList } from "../../../schemas/oauth/grant-list.ts";
import {
  CLIENTS_PER_PAGE,
  CLIENTS_PER_USER_MAX,
  GRANTS_PER_CLIENT_MAX,
} from "../../../schemas/oauth/limits.ts";
import { type Consent, oauthGrant } from "../../../schemas/oauth/oauth-grant.ts";
import { defineActor } from "../../runtime/kinds/define-actor.ts";
import { AllowedClientRow, GrantListState } from "./grant-list-state.ts";

/**
 * Stored at: user id, 32 hex
 *
 * State: `{ clients: [] }`; those of the first release as their rows are, until they change
 *
 * Row `<client_id>`: `{ clientId, scopes, rejectedScopes, accountIds, invitationIds?, consentedAt, lastGrantAt?,
 * grantIds }`: what a person has allowed a client, and the grants that rest on it
 */
export const grantListActor = defineActor(grantList, {
  state: GrantListState,
  rows: AllowedClientRow,
  initial: { clients: [] },

  handlers: {
    consent(state, { clientId, ...consent }, { now, rows }) {
      const known = clientOf({ state, rows }, clientId);
      if (!known && rows.size + state.clients.length >= CLIENTS_PER_USER_MAX) {
        throw new ActorError(
          "limit_reached",
          `Cannot allow client: ${CLIENTS_PER_USER_MAX} are allowed, which is the limit`,
        );
      }
      const decided = known ? merged(known, consent) : consent;
      const client = { grantIds: [], ...known, ...decided, clientId, consentedAt: now };
      return { ...withClient(state, client), reply: {} };
    },

    getConsent(state, { clientId }, { rows }) {
      return { state, reply: { consent: clientOf({ state, rows }, clientId) ?? null } };
    },

    list(state, { cursor }, { rows }) {
      const sorted = [...state.clients, ...rows.values()].sort(latestFirst);
      const before = cursor === undefined ? undefined : positionOf(cursor);
      const rest = before ? sorted.filter((client) => latestFirst(before, client) < 0) : sorted;
      const clients = rest.slice(0, CLIENTS_PER_PAGE);
      const last = rest.length > clients.length ? clients.at(-1) : undefined;
      return {
        state,
        reply: { clients, ...(last && { cursor: `${last.consentedAt}.${last.clientId}` }) },
      };
    },

    revokeClient(state, { clientId }, { rows }) {
      const known = clientOf({ state, rows }, clientId);
      if (!known) return { state, reply: { grantIds: [] } };
      const { grantIds } = known;
      const send = grantIds.map((grantId) => envelope(oauthGrant, grantId, "consentWithdrawn", {}));
      const rest = { state: without(state, clientId), rows: { [clientId]: null } };
      return { ...rest, reply: { grantIds }, send };
    },

    addGrant(state, grant, context) {
      const isRecorded = clientOf({ state, rows: context.rows }, grant.clientId) !== undefined;
      return { ...withGrant(state, grant, context), reply: { isRecorded } };
    },
    grantOpened: (state, grant, context) => withGrant(state, grant, context),

    grantEnded(state, { clientId, grantId }, { rows }) {
      const known = clientOf({ state, rows }, clientId);
      if (!known?.grantIds.includes(grantId)) return { state };
      const grantIds = known.grantIds.filter((id) => id !== grantId);
      return withClient(state, { ...known, grantIds });
    },
  },
});

type State = DeepReadonly<GrantListState>;
type Client = DeepReadonly<AllowedClient>;
type Position = Pick<Client, "consentedAt" | "clientId">;

const clientOf = (
  { state, rows }: { state: State; rows: ReadonlyMap<string, Client> },
  clientId: string,
) => rows.get(clientId) ?? state.clients.find((client) => client.clientId === clientId);

/**
 * Adds a grant of a client to the person's list. If the client then has too many grants, its oldest grant is revoked.
 */
function withGrant(
  state: State,
  { clientId, grantId }: { clientId: string; grantId: string },
  { now, rows }: { now: number; rows: ReadonlyMap<string, Client> },
) {
  const known = clientOf({ state, rows }, clientId);
  // The person revoked the consent while the grant was opened, so revoke the grant too.
  if (!known) return { state, send: [envelope(oauthGrant, grantId, "consentWithdrawn", {})] };
  if (known.grantIds.includes(grantId)) return { state };
  const all = [...known.grantIds, grantId];
  const evicted = all.slice(0, -GRANTS_PER_CLIENT_MAX);
  const grantIds = all.slice(-GRANTS_PER_CLIENT_MAX);
  return {
    ...withClient(state, { ...known, grantIds, lastGrantAt: now }),
    send: evicted.map((id) => envelope(oauthGrant, id, "consentWithdrawn", {})),
  };
}

function without(state: State, clientId: string): State {
  const clients = state.clients.filter((client) => client.clientId !== clientId);
  return clients.length < state.clients.length ? { clients } : state;
}

const withClient = (state: State, client: Client) => ({
  state: without(state, client.clientId),
  rows: { [client.clientId]: client },
});

const latestFirst = (one: Position, other: Position) =>
  other.consentedAt - one.consentedAt || (one.clientId < other.clientId ? -1 : 1);

function positionOf(cursor: string): Position {
  const [consentedAt, clientId = ""] = cursor.split(".");
  return { consentedAt: Number(consentedAt), clientId };
}

/**
 * Merges a new decision with the earlier consent. If the accounts differ, or the person has left one and joined it again,
 * the earlier consent does not count.
 */
function merged(known: DeepReadonly<Consent>, decided: DeepReadonly<Consent>) {
  if (membershipsOf(known).symmetricDifference(membershipsOf(decided)).size > 0) return decided;
  const now = new Set([...decided.scopes, ...decided.rejectedScopes]);
  const before = (scopes: readonly Consent["scopes"][number][]) =>
    scopes.filter((scope) => !now.has(scope));
  return {
    ...decided,
    scopes: [...before(known.scopes), ...decided.scopes],
    rejectedScopes: [...before(known.rejectedScopes), ...decided.rejectedScopes],
  };
}

const membershipsOf = ({ accountIds, invitationIds = [] }: DeepReadonly<Consent>) =>
  new Set([...accountIds, ...invitationIds]);

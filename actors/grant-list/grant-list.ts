/** Remembers what a person has allowed which client, and ends its grants when they take it back. */
import { type DeepReadonly, envelope } from "../../schemas/contract.ts";
import { ActorError } from "../../schemas/errors.ts";
import { type AllowedClient, grantList } from "../../schemas/grant-list.ts";
import { type Consent, oauthGrant } from "../../schemas/oauth-grant.ts";
import { CLIENTS_PER_USER_MAX, GRANTS_PER_CLIENT_MAX } from "../../schemas/oauth-server-limits.ts";
import { defineActor } from "../runtime/define-actor.ts";
import { GrantListState } from "./grant-list-state.ts";

export const grantListActor = defineActor(grantList, {
  state: GrantListState,
  initial: { clients: [] },

  handlers: {
    consent(state, { clientId, ...consent }, { now }) {
      const known = clientOf(state, clientId);
      if (!known && state.clients.length >= CLIENTS_PER_USER_MAX) {
        throw new ActorError(
          "limit_reached",
          `Cannot allow client: ${CLIENTS_PER_USER_MAX} are allowed, which is the limit`,
        );
      }
      const decided = known ? merged(known, consent) : consent;
      const client = { grantIds: [], ...known, ...decided, clientId, consentedAt: now };
      return { state: { clients: [...othersOf(state, clientId), client] }, reply: {} };
    },

    getConsent(state, { clientId }) {
      return { state, reply: { consent: clientOf(state, clientId) ?? null } };
    },

    list(state) {
      return { state, reply: { clients: state.clients.toReversed() } };
    },

    revokeClient(state, { clientId }) {
      const known = clientOf(state, clientId);
      if (!known) return { state, reply: { grantIds: [] } };
      const { grantIds } = known;
      const send = grantIds.map((grantId) => envelope(oauthGrant, grantId, "consentWithdrawn", {}));
      return { state: { clients: othersOf(state, clientId) }, reply: { grantIds }, send };
    },

    grantOpened(state, { clientId, grantId }, { now }) {
      const known = clientOf(state, clientId);
      // It was opened while the person took back what it rests on.
      if (!known) return { state, send: [envelope(oauthGrant, grantId, "consentWithdrawn", {})] };
      if (known.grantIds.includes(grantId)) return { state };
      const all = [...known.grantIds, grantId];
      const gone = all.slice(0, -GRANTS_PER_CLIENT_MAX);
      const grantIds = all.slice(-GRANTS_PER_CLIENT_MAX);
      return {
        state: replaced(state, { ...known, grantIds, lastGrantAt: now }),
        send: gone.map((id) => envelope(oauthGrant, id, "consentWithdrawn", {})),
      };
    },

    grantEnded(state, { clientId, grantId }) {
      const known = clientOf(state, clientId);
      if (!known?.grantIds.includes(grantId)) return { state };
      const grantIds = known.grantIds.filter((id) => id !== grantId);
      return { state: replaced(state, { ...known, grantIds }) };
    },
  },
});

type State = DeepReadonly<GrantListState>;
type Client = DeepReadonly<AllowedClient>;

const clientOf = ({ clients }: State, clientId: string) =>
  clients.find((client) => client.clientId === clientId);

const othersOf = ({ clients }: State, clientId: string) =>
  clients.filter((client) => client.clientId !== clientId);

const replaced = ({ clients }: State, client: Client): State => ({
  clients: clients.map((other) => (other.clientId === client.clientId ? client : other)),
});

/** What was allowed for other accounts is not allowed for these. */
function merged(known: DeepReadonly<Consent>, decided: DeepReadonly<Consent>) {
  const accounts = new Set(known.accountIds);
  const same =
    accounts.size === decided.accountIds.length &&
    decided.accountIds.every((id) => accounts.has(id));
  if (!same) return decided;
  const now = new Set([...decided.scopes, ...decided.rejectedScopes]);
  const before = (scopes: readonly Consent["scopes"][number][]) =>
    scopes.filter((scope) => !now.has(scope));
  return {
    accountIds: decided.accountIds,
    scopes: [...before(known.scopes), ...decided.scopes],
    rejectedScopes: [...before(known.rejectedScopes), ...decided.rejectedScopes],
  };
}

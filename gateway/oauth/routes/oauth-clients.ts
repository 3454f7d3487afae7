/** REST routes to register, change and delete OAuth clients, rotate their secrets, and read their change log. */
import { randomBytes } from "node:crypto";
import type { z } from "zod";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { account, type Member } from "../../../schemas/account/account.ts";
import { AccountPath } from "../../../schemas/account/http/accounts.ts";
import { permits } from "../../../schemas/account/permissions.ts";
import type { DeepReadonly } from "../../../schemas/contract.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { nothing } from "../../../schemas/http/nothing.ts";
import { JSON_BODY_BYTES_MAX, PAGE_ENTRIES } from "../../../schemas/limits.ts";
import { grantList } from "../../../schemas/oauth/grant-list.ts";
import {
  CreatedOAuthClient,
  CreateOAuthClient,
  DeletedOAuthClient,
  OAuthChangesQuery,
  OAuthClientPath,
  OAuthClientsQuery,
  patchOf,
  RotatedSecret,
  settingsOf,
  UpdateOAuthClient,
  WireAllowance,
  WireOAuthChange,
  WireOAuthClient,
  WireScope,
} from "../../../schemas/oauth/http/oauth-clients.ts";
import { OAUTH_CLIENTS_PER_ACCOUNT_MAX } from "../../../schemas/oauth/limits.ts";
import { oauthClient } from "../../../schemas/oauth/oauth-client.ts";
import { oauthClientList } from "../../../schemas/oauth/oauth-client-list.ts";
import type { Consent } from "../../../schemas/oauth/oauth-grant.ts";
import { ALL_SCOPES, SCOPES } from "../../../schemas/oauth/scopes.ts";
import { authorOf } from "../../account/author.ts";
import { coversMembership } from "../../account/covers-membership.ts";
import { blameCursor } from "../../http/blame-cursor.ts";
import { callAndNotify } from "../../http/call-and-notify.ts";
import { callFew } from "../../http/call-few.ts";
import { pageOf } from "../../http/listing.ts";
import { defineRoute, type Route, type RouteRequest, type Tag } from "../../http/route.ts";
import { newClientSecret } from "../clients/client-secret.ts";
import { wireChange, wireClient } from "./wire-client.ts";

const OAUTH_CLIENTS_TAG: Tag = {
  name: "OAuth clients",
  description: "Clients that may ask people for authorization",
};

const CLIENTS = "/accounts/{account_id}/oauth_clients";
const CLIENT = `${CLIENTS}/{client_id}`;

const CREATE_OAUTH_CLIENT = {
  tag: OAUTH_CLIENTS_TAG,
  permissions: ["oauth-clients.write"],
  method: "post",
  path: CLIENTS,
  id: "createOAuthClient",
  summary: "Register a client; its secret is shown only in this response",
  parameters: AccountPath,
  query: nothing,
  body: { schema: CreateOAuthClient, bytesMax: JSON_BODY_BYTES_MAX },
  refusals: ["limit_reached"],
  answer: { result: CreatedOAuthClient },
} as const;

const LIST_OAUTH_CLIENTS = {
  tag: OAUTH_CLIENTS_TAG,
  permissions: ["oauth-clients.read"],
  method: "get",
  path: CLIENTS,
  id: "listOAuthClients",
  summary: "List the account's clients, newest first",
  parameters: AccountPath,
  query: OAuthClientsQuery,
  answer: { result: WireOAuthClient.array(), paged: "both" },
} as const;

const GET_OAUTH_CLIENT = {
  tag: OAUTH_CLIENTS_TAG,
  permissions: ["oauth-clients.read"],
  method: "get",
  path: CLIENT,
  id: "getOAuthClient",
  summary: "Get a client, without its secrets",
  parameters: OAuthClientPath,
  query: nothing,
  answer: { result: WireOAuthClient },
} as const;

const UPDATE_OAUTH_CLIENT = {
  tag: OAUTH_CLIENTS_TAG,
  permissions: ["oauth-clients.write"],
  method: "patch",
  path: CLIENT,
  id: "updateOAuthClient",
  summary: "Change fields of a client; a new client_uri must be verified again",
  parameters: OAuthClientPath,
  query: nothing,
  body: { schema: UpdateOAuthClient, bytesMax: JSON_BODY_BYTES_MAX },
  refusals: ["conflict"],
  answer: { result: WireOAuthClient },
} as const;

const DELETE_OAUTH_CLIENT = {
  tag: OAUTH_CLIENTS_TAG,
  permissions: ["oauth-clients.write"],
  method: "delete",
  path: CLIENT,
  id: "deleteOAuthClient",
  isRevocation: true,
  summary: "Delete a client and revoke all its grants at once",
  parameters: OAuthClientPath,
  query: nothing,
  answer: { result: DeletedOAuthClient },
} as const;

const ROTATE_OAUTH_CLIENT_SECRET = {
  tag: OAUTH_CLIENTS_TAG,
  permissions: ["oauth-clients.write"],
  method: "post",
  path: `${CLIENT}/rotate_secret`,
  id: "rotateOAuthClientSecret",
  isRevocation: true,
  summary:
    "Create a second secret; both are valid until the older one is deleted. A second secret that was never used is replaced",
  parameters: OAuthClientPath,
  query: nothing,
  refusals: ["conflict"],
  answer: { result: RotatedSecret },
} as const;

const DELETE_OLD_OAUTH_CLIENT_SECRET = {
  tag: OAUTH_CLIENTS_TAG,
  permissions: ["oauth-clients.write"],
  method: "delete",
  path: `${CLIENT}/rotate_secret`,
  id: "deleteOldOAuthClientSecret",
  isRevocation: true,
  summary: "Delete the older of two secrets",
  parameters: OAuthClientPath,
  query: nothing,
  answer: { result: DeletedOAuthClient },
} as const;

const LIST_OAUTH_CLIENT_CHANGES = {
  tag: OAUTH_CLIENTS_TAG,
  permissions: ["oauth-clients.read"],
  method: "get",
  path: `${CLIENT}/audit_log`,
  id: "listOAuthClientChanges",
  summary:
    "List who changed a client and when, newest first; kept for 90 days after the client is deleted",
  parameters: OAuthClientPath,
  query: OAuthChangesQuery,
  answer: { result: WireOAuthChange.array(), paged: "cursor" },
} as const;

const LIST_OAUTH_CLIENT_ALLOWANCES = {
  tag: OAUTH_CLIENTS_TAG,
  permissions: ["oauth-clients.read"],
  method: "get",
  path: `${CLIENT}/allowances`,
  id: "listOAuthClientAllowances",
  summary: "List the members who authorized a client, and the scopes they granted",
  parameters: OAuthClientPath,
  query: nothing,
  answer: { result: WireAllowance.array() },
} as const;

const LIST_OAUTH_SCOPES = {
  tag: OAUTH_CLIENTS_TAG,
  method: "get",
  path: "/oauth/scopes",
  id: "listOAuthScopes",
  summary: "List the scopes that a client can request",
  parameters: nothing,
  query: nothing,
  answer: { result: WireScope.array() },
} as const;

interface ClientParts {
  actors: ActorClient;
  /**
   * `pollMs` is the longest pause between two DNS lookups of a domain that is not verified yet. After `windowMs`
   * these lookups stop.
   */
  pace: { pollMs: number; windowMs: number };
}

type OfClient<Q = unknown, B = unknown> = RouteRequest<z.output<typeof OAuthClientPath>, Q, B>;

/** The REST routes of OAuth clients, their secrets, their change log, and the scopes. */
export function oauthClientRoutes(parts: ClientParts): Route[] {
  return [
    defineRoute({ ...CREATE_OAUTH_CLIENT, handle: createClient(parts) }),
    defineRoute({ ...LIST_OAUTH_CLIENTS, handle: listClients(parts) }),
    defineRoute({ ...GET_OAUTH_CLIENT, handle: getClient(parts) }),
    defineRoute({ ...UPDATE_OAUTH_CLIENT, handle: updateClient(parts) }),
    defineRoute({ ...DELETE_OAUTH_CLIENT, handle: deleteClient(parts) }),
    defineRoute({ ...ROTATE_OAUTH_CLIENT_SECRET, handle: rotateSecret(parts) }),
    defineRoute({ ...DELETE_OLD_OAUTH_CLIENT_SECRET, handle: deleteOldSecret(parts) }),
    defineRoute({ ...LIST_OAUTH_CLIENT_CHANGES, handle: listChanges(parts) }),
    defineRoute({ ...LIST_OAUTH_CLIENT_ALLOWANCES, handle: listAllowances(parts) }),
    defineRoute({
      ...LIST_OAUTH_SCOPES,
      handle: async () => ({ result: ALL_SCOPES.map((id) => ({ id, ...SCOPES[id] })) }),
    }),
  ];
}

function createClient({ actors, pace }: ClientParts) {
  return async ({ caller, body }: RouteRequest<unknown, unknown, CreateOAuthClient>) => {
    const { accountId } = caller;
    const clientId = randomBytes(16).toString("hex");
    const settings = settingsOf(body);
    const made = settings.tokenEndpointAuthMethod === "none" ? undefined : newClientSecret();
    await actors.call(oauthClientList, accountId, "reserve", { clientId });
    const entry = await actors.call(oauthClient, clientId, "create", {
      accountId,
      by: authorOf(caller),
      settings,
      ...(made && { secret: { hash: made.hash, lastFour: made.lastFour } }),
      pace,
    });
    const shown = wireClient(clientId, entry);
    return { result: made ? { ...shown, client_secret: made.text } : shown };
  };
}

function listClients({ actors }: ClientParts) {
  return async ({ caller, query }: RouteRequest<unknown, OAuthClientsQuery>) => {
    const { accountId } = caller;
    if (query.page !== undefined || query.per_page !== undefined)
      return clientsOfPage(actors, accountId, query);
    const { clientIds, cursor } = await actors
      .call(oauthClientList, accountId, "list", {
        count: query.limit,
        ...(query.cursor !== undefined && { cursor: query.cursor }),
      })
      .catch(blameCursor);
    const result = await findClients(actors, clientIds, accountId);
    const resultInfo = { count: result.length, ...(cursor !== undefined && { cursor }) };
    return { result, resultInfo };
  };
}

async function clientsOfPage(
  actors: ActorClient,
  accountId: string,
  { page, per_page }: OAuthClientsQuery,
) {
  const count = OAUTH_CLIENTS_PER_ACCOUNT_MAX;
  const { clientIds } = await actors.call(oauthClientList, accountId, "list", { count });
  const listing = { page: page ?? 1, per_page: per_page ?? PAGE_ENTRIES };
  const { result, resultInfo } = pageOf(clientIds, { ...listing, direction: "asc" });
  return { result: await findClients(actors, result, accountId), resultInfo };
}

async function findClients(actors: ActorClient, clientIds: readonly string[], accountId: string) {
  const found = await callFew(clientIds, (clientId) => findClient(actors, clientId, accountId));
  return found.filter((client) => client !== undefined);
}

/** Resolves to undefined if the client is still being created or was just deleted. */
async function findClient(actors: ActorClient, clientId: string, accountId: string) {
  try {
    return wireClient(clientId, await actors.call(oauthClient, clientId, "get", { accountId }));
  } catch (error) {
    if (error instanceof ActorError && error.code === "not_found") return undefined;
    throw error;
  }
}

function getClient({ actors }: ClientParts) {
  return async ({ caller: { accountId }, parameters: { client_id: id } }: OfClient) => {
    return { result: wireClient(id, await actors.call(oauthClient, id, "get", { accountId })) };
  };
}

function updateClient({ actors, pace }: ClientParts) {
  return async (asked: OfClient<unknown, UpdateOAuthClient>) => {
    const { caller, parameters, body } = asked;
    const { client_id: id } = parameters;
    const entry = await callAndNotify(actors, oauthClient, id, "update", {
      ...changeBy(caller),
      patch: patchOf(body),
      ...(body.visibility !== undefined && { visibility: body.visibility }),
      pace,
    });
    return { result: wireClient(id, entry) };
  };
}

function deleteClient({ actors }: ClientParts) {
  return async ({ caller, parameters: { client_id: id } }: OfClient) => {
    await callAndNotify(actors, oauthClient, id, "remove", changeBy(caller));
    return { result: { id } };
  };
}

function rotateSecret({ actors }: ClientParts) {
  return async ({ caller, parameters: { client_id: id } }: OfClient) => {
    const { text, hash, lastFour } = newClientSecret();
    const change = { ...changeBy(caller), secret: { hash, lastFour } };
    // The new secret may replace one.
    await callAndNotify(actors, oauthClient, id, "addSecret", change);
    return { result: { client_secret: text } };
  };
}

function deleteOldSecret({ actors }: ClientParts) {
  return async ({ caller, parameters: { client_id: id } }: OfClient) => {
    await callAndNotify(actors, oauthClient, id, "removeOldSecret", changeBy(caller));
    return { result: { id } };
  };
}

function listChanges({ actors }: ClientParts) {
  return async ({ caller, parameters, query }: OfClient<OAuthChangesQuery>) => {
    const { entries, cursor } = await actors
      .call(oauthClient, parameters.client_id, "listChanges", {
        accountId: caller.accountId,
        count: query.limit,
        ...(query.cursor !== undefined && { cursor: query.cursor }),
      })
      .catch(blameCursor);
    const resultInfo = { count: entries.length, ...(cursor !== undefined && { cursor }) };
    return { result: entries.map(wireChange), resultInfo };
  };
}

/**
 * Lists the members of this account who allowed the client. People of other accounts who use a public client are not
 * listed, to protect their privacy.
 */
function listAllowances({ actors }: ClientParts) {
  return async ({ caller: { accountId, permissions }, parameters }: OfClient) => {
    const { client_id: clientId } = parameters;
    await actors.call(oauthClient, clientId, "get", { accountId });
    const showsEmail = permits(permissions, "account.read");
    const { members } = await actors.call(account, accountId, "listMembers", {});
    const found = await callFew(members, async (member) => {
      const { userId, email } = member;
      const { consent } = await actors.call(grantList, userId, "getConsent", { clientId });
      const user = { id: userId, ...(showsEmail && { email }) };
      return consent && { user, ...wireConsent(consent, accountId, member) };
    });
    return { result: found.filter((one) => one !== null) };
  };
}

/** Shows whether the consent counts for this account. It does not show how many other accounts the person chose. */
const wireConsent = (
  consent: DeepReadonly<Consent>,
  accountId: string,
  member: DeepReadonly<Member>,
) => ({
  scopes: [...consent.scopes],
  declined_scopes: [...consent.rejectedScopes],
  is_for_this_account: consent.accountIds.includes(accountId) && coversMembership(consent, member),
});

const changeBy = (caller: RouteRequest["caller"]) => ({
  accountId: caller.accountId,
  by: authorOf(caller),
});

/** OAuth clients of an account: registered, changed, rotated, deleted; and the log of it. */
import { randomBytes } from "node:crypto";
import type { z } from "zod";
import type { ActorClient } from "../../../actors/runtime/actor-client.ts";
import { AccountPath } from "../../../schemas/account/http/accounts.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { nothing } from "../../../schemas/http/nothing.ts";
import { JSON_BODY_BYTES_MAX, PAGE_ENTRIES } from "../../../schemas/limits.ts";
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
  WireOAuthChange,
  WireOAuthClient,
  WireScope,
} from "../../../schemas/oauth/http/oauth-clients.ts";
import {
  CLIENT_SECRETS_MAX,
  OAUTH_CLIENTS_PER_ACCOUNT_MAX,
} from "../../../schemas/oauth/limits.ts";
import {
  type AuditEntry,
  type ClientEntry,
  oauthClient,
} from "../../../schemas/oauth/oauth-client.ts";
import { oauthClientList } from "../../../schemas/oauth/oauth-client-list.ts";
import { ALL_SCOPES, SCOPES } from "../../../schemas/oauth/scopes.ts";
import { authorOf } from "../../account/author.ts";
import { blameCursor } from "../../http/blame-cursor.ts";
import { callTold } from "../../http/call-told.ts";
import { pageOf } from "../../http/listing.ts";
import { type Asked, defineRoute, type Route } from "../../http/route.ts";
import { newClientSecret } from "../clients/client-secret.ts";

const CLIENTS = "/accounts/{account_id}/oauth_clients";
const CLIENT = `${CLIENTS}/{client_id}`;

export interface OAuthClientRouteParts {
  actors: ActorClient;
  /** How often a domain is asked at most, and for how long. */
  pace: { pollMs: number; windowMs: number };
}

type OfClient<Q = unknown, B = unknown> = Asked<z.output<typeof OAuthClientPath>, Q, B>;

export function oauthClientRoutes({ actors, pace }: OAuthClientRouteParts): Route[] {
  const shared = { tag: "OAuth clients" };
  const read = { ...shared, permissions: ["oauth-clients.read"] as const };
  const write = { ...shared, permissions: ["oauth-clients.write"] as const };
  return [
    defineRoute({
      ...write,
      method: "post",
      path: CLIENTS,
      id: "createOAuthClient",
      summary: "Register a client; its secret is shown this once",
      parameters: AccountPath,
      query: nothing,
      body: { schema: CreateOAuthClient, bytesMax: JSON_BODY_BYTES_MAX },
      refusals: ["limit_reached"],
      answer: { result: CreatedOAuthClient },
      handle: createClient,
    }),
    defineRoute({
      ...read,
      method: "get",
      path: CLIENTS,
      id: "listOAuthClients",
      summary: "The account's clients, newest first",
      parameters: AccountPath,
      query: OAuthClientsQuery,
      answer: { result: WireOAuthClient.array(), paged: "both" },
      handle: listClients,
    }),
    defineRoute({
      ...read,
      method: "get",
      path: CLIENT,
      id: "getOAuthClient",
      summary: "One client, without its secrets",
      parameters: OAuthClientPath,
      query: nothing,
      answer: { result: WireOAuthClient },
      handle: getClient,
    }),
    defineRoute({
      ...write,
      method: "patch",
      path: CLIENT,
      id: "updateOAuthClient",
      summary: "Change fields of a client; sending client_uri asks for its verification again",
      parameters: OAuthClientPath,
      query: nothing,
      body: { schema: UpdateOAuthClient, bytesMax: JSON_BODY_BYTES_MAX },
      refusals: ["conflict"],
      answer: { result: WireOAuthClient },
      handle: updateClient,
    }),
    defineRoute({
      ...write,
      method: "delete",
      path: CLIENT,
      id: "deleteOAuthClient",
      summary: "Delete a client; whatever was granted to it ends at once",
      parameters: OAuthClientPath,
      query: nothing,
      answer: { result: DeletedOAuthClient },
      handle: deleteClient,
    }),
    defineRoute({
      ...write,
      method: "post",
      path: `${CLIENT}/rotate_secret`,
      id: "rotateOAuthClientSecret",
      summary: "Make a second secret; both are valid until the old one is deleted",
      parameters: OAuthClientPath,
      query: nothing,
      refusals: ["conflict"],
      answer: { result: RotatedSecret },
      handle: rotateSecret,
    }),
    defineRoute({
      ...write,
      method: "delete",
      path: `${CLIENT}/rotate_secret`,
      id: "deleteOldOAuthClientSecret",
      summary: "Delete the older of two secrets",
      parameters: OAuthClientPath,
      query: nothing,
      answer: { result: DeletedOAuthClient },
      handle: deleteOldSecret,
    }),
    defineRoute({
      ...read,
      method: "get",
      path: `${CLIENT}/audit_log`,
      id: "listOAuthClientChanges",
      summary: "Who changed a client and when, newest first; also for 90 days after it was deleted",
      parameters: OAuthClientPath,
      query: OAuthChangesQuery,
      answer: { result: WireOAuthChange.array(), paged: "cursor" },
      handle: listChanges,
    }),
    defineRoute({
      ...shared,
      method: "get",
      path: "/oauth/scopes",
      id: "listOAuthScopes",
      summary: "What a client can ask for",
      parameters: nothing,
      query: nothing,
      answer: { result: WireScope.array() },
      handle: async () => ({ result: ALL_SCOPES.map((id) => ({ id, ...SCOPES[id] })) }),
    }),
  ];

  async function createClient({ caller, body }: Asked<unknown, unknown, CreateOAuthClient>) {
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
  }

  async function listClients({ caller, query }: Asked<unknown, OAuthClientsQuery>) {
    const { accountId } = caller;
    if (query.page !== undefined || query.per_page !== undefined)
      return clientsOfPage(accountId, query);
    const { clientIds, cursor } = await actors
      .call(oauthClientList, accountId, "list", {
        count: query.limit,
        ...(query.cursor !== undefined && { cursor: query.cursor }),
      })
      .catch(blameCursor);
    const result = await findClients(clientIds, accountId);
    const resultInfo = { count: result.length, ...(cursor !== undefined && { cursor }) };
    return { result, resultInfo };
  }

  async function clientsOfPage(accountId: string, { page, per_page }: OAuthClientsQuery) {
    const count = OAUTH_CLIENTS_PER_ACCOUNT_MAX;
    const { clientIds } = await actors.call(oauthClientList, accountId, "list", { count });
    const listing = { page: page ?? 1, per_page: per_page ?? PAGE_ENTRIES };
    const { result, resultInfo } = pageOf(clientIds, { ...listing, direction: "asc" });
    return { result: await findClients(result, accountId), resultInfo };
  }

  async function findClients(clientIds: readonly string[], accountId: string) {
    const found = await Promise.all(clientIds.map((clientId) => findClient(clientId, accountId)));
    return found.filter((client) => client !== undefined);
  }

  /** Undefined when it is being made, or was deleted a moment ago. */
  async function findClient(clientId: string, accountId: string) {
    try {
      return wireClient(clientId, await actors.call(oauthClient, clientId, "get", { accountId }));
    } catch (error) {
      if (error instanceof ActorError && error.code === "not_found") return undefined;
      throw error;
    }
  }

  async function getClient({ caller: { accountId }, parameters: { client_id: id } }: OfClient) {
    return { result: wireClient(id, await actors.call(oauthClient, id, "get", { accountId })) };
  }

  async function updateClient(asked: OfClient<unknown, UpdateOAuthClient>) {
    const { caller, parameters, body } = asked;
    const { client_id: id } = parameters;
    const entry = await callTold(actors, oauthClient, id, "update", {
      ...changeBy(caller),
      patch: patchOf(body),
      ...(body.visibility !== undefined && { visibility: body.visibility }),
      pace,
    });
    return { result: wireClient(id, entry) };
  }

  async function deleteClient({ caller, parameters: { client_id: id } }: OfClient) {
    await callTold(actors, oauthClient, id, "remove", changeBy(caller));
    return { result: { id } };
  }

  async function rotateSecret({ caller, parameters: { client_id: id } }: OfClient) {
    const { text, hash, lastFour } = newClientSecret();
    const change = { ...changeBy(caller), secret: { hash, lastFour } };
    await actors.call(oauthClient, id, "addSecret", change);
    return { result: { client_secret: text } };
  }

  async function deleteOldSecret({ caller, parameters: { client_id: id } }: OfClient) {
    await actors.call(oauthClient, id, "removeOldSecret", changeBy(caller));
    return { result: { id } };
  }

  async function listChanges({ caller, parameters, query }: OfClient<OAuthChangesQuery>) {
    const { entries, cursor } = await actors
      .call(oauthClient, parameters.client_id, "listChanges", {
        accountId: caller.accountId,
        count: query.limit,
        ...(query.cursor !== undefined && { cursor: query.cursor }),
      })
      .catch(blameCursor);
    const resultInfo = { count: entries.length, ...(cursor !== undefined && { cursor }) };
    return { result: entries.map(wireChange), resultInfo };
  }
}

const changeBy = (caller: Asked["caller"]) => ({
  accountId: caller.accountId,
  by: authorOf(caller),
});

const timeOf = (at: number) => new Date(at).toISOString();
const wireChange = (entry: AuditEntry) => ({ ...entry, at: timeOf(entry.at) });

function wireClient(clientId: string, entry: ClientEntry): z.input<typeof WireOAuthClient> {
  const { logoUri, policyUri, tosUri, clientUri, promotedAt } = entry;
  return {
    client_id: clientId,
    client_name: entry.clientName,
    visibility: entry.visibility,
    grant_types: entry.grantTypes,
    response_types: entry.responseTypes,
    redirect_uris: entry.redirectUris,
    post_logout_redirect_uris: entry.postLogoutRedirectUris,
    scopes: entry.scopes,
    optional_scopes: entry.optionalScopes,
    token_endpoint_auth_method: entry.tokenEndpointAuthMethod,
    allowed_cors_origins: entry.allowedCorsOrigins,
    ...(logoUri !== undefined && { logo_uri: logoUri }),
    ...(policyUri !== undefined && { policy_uri: policyUri }),
    ...(tosUri !== undefined && { tos_uri: tosUri }),
    ...(clientUri !== undefined && { client_uri: clientUri }),
    ...(entry.verification && { client_uri_verification: wireVerification(entry.verification) }),
    has_rotated_secret: entry.secrets.length === CLIENT_SECRETS_MAX,
    secrets: entry.secrets.map(({ lastFour, createdAt, lastUsedAt }) => ({
      last_four: lastFour,
      created_at: timeOf(createdAt),
      ...(lastUsedAt !== undefined && { last_used_at: timeOf(lastUsedAt) }),
    })),
    created_at: timeOf(entry.createdAt),
    updated_at: timeOf(entry.updatedAt),
    ...(promotedAt !== undefined && { promoted_at: timeOf(promotedAt) }),
  };
}

function wireVerification(verification: NonNullable<ClientEntry["verification"]>) {
  const { status, text, host, lastAnswer } = verification;
  const { lastCheckedAt, nextCheckAt, verifiedAt, missingSince } = verification;
  return {
    status,
    text,
    host,
    ...(lastAnswer !== undefined && { last_answer: lastAnswer }),
    ...(lastCheckedAt !== undefined && { last_checked_at: timeOf(lastCheckedAt) }),
    ...(nextCheckAt !== undefined && { next_check_at: timeOf(nextCheckAt) }),
    ...(verifiedAt !== undefined && { verified_at: timeOf(verifiedAt) }),
    ...(missingSince !== undefined && { missing_since: timeOf(missingSince) }),
  };
}

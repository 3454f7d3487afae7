/** Checks pending requests and codes against the client's current registration, which may have changed. */
import { z } from "zod";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import type { PendingLogout } from "../../../schemas/account/session.ts";
import { matchesRedirectUri } from "../../../schemas/oauth/client-uris.ts";
import type { ClientMetadata } from "../clients/live-client.ts";
import { errors } from "../library/oidc-library.ts";
import { clientOf } from "./client-store.ts";

/** The part of a stored authorization request that is checked again. */
const Waiting = z.looseObject({
  params: z.looseObject({
    client_id: z.string(),
    redirect_uri: z.string(),
    code_challenge: z.string().optional(),
  }),
});

/**
 * Checks a pending authorization request again, because oidc-provider checks it only on arrival. A refusal shows an
 * error and does not redirect.
 */
export async function checkWaiting(actors: ActorClient, record: unknown): Promise<void> {
  const { client_id, redirect_uri, code_challenge } = Waiting.parse(record).params;
  const client = await clientOf(actors, client_id);
  // oidc-provider itself refuses a client that no longer exists.
  if (!client) return;
  if (!isAmong(client.redirect_uris, redirect_uri)) throw new errors.InvalidRedirectUri();
  if (lacksProof(client, code_challenge)) {
    throw new errors.InvalidRequest("The client has to use PKCE by now: go back and start again");
  }
}

/** Returns whether the client, as registered now, would still receive this code. */
export function isCodeGood(client: ClientMetadata, record: Record<string, unknown>): boolean {
  const { redirectUri, codeChallenge } = record;
  return isAmong(client.redirect_uris, redirectUri) && !lacksProof(client, codeChallenge);
}

/** Removes the redirect address of a sign-out if the client is no longer registered for this address. */
export async function stillLeading(
  actors: ActorClient,
  logout: PendingLogout,
): Promise<PendingLogout> {
  const { clientId, postLogoutRedirectUri: uri, ...rest } = logout;
  if (clientId === undefined || uri === undefined) return logout;
  const client = await clientOf(actors, clientId);
  return isAmong(client?.post_logout_redirect_uris, uri) ? logout : { ...rest, clientId };
}

const lacksProof = (client: ClientMetadata, codeChallenge: unknown) =>
  client.token_endpoint_auth_method === "none" && codeChallenge === undefined;

/** Returns whether a registered redirect URI matches this one (RFC 8252 section 7.3 for loopback ports). */
export const isAmong = (registered: readonly string[] | undefined, uri: unknown) =>
  typeof uri === "string" && registered?.some((known) => matchesRedirectUri(known, uri)) === true;

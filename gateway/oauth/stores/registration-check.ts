/** Holds what a client asked for against what it is registered for by now: it may have been changed since. */
import { z } from "zod";
import type { ActorClient } from "../../../actors/runtime/actor-client.ts";
import type { PendingLogout } from "../../../schemas/account/session.ts";
import { matchesRedirectUri } from "../../../schemas/oauth/client-uris.ts";
import type { ClientMetadata } from "../clients/live-client.ts";
import { errors } from "../library/oidc-library.ts";
import { clientOf } from "./client-store.ts";

/** Of an authorization request, as the library keeps it. */
const Waiting = z.looseObject({
  params: z.looseObject({
    client_id: z.string(),
    redirect_uri: z.string(),
    code_challenge: z.string().optional(),
  }),
});

/** The library checks a request when it comes, not when it goes on. What it is refused with leads nowhere. */
export async function checkWaiting(actors: ActorClient, record: unknown): Promise<void> {
  const { client_id, redirect_uri, code_challenge } = Waiting.parse(record).params;
  const client = await clientOf(actors, client_id);
  // Of one that is gone the library says so.
  if (!client) return;
  if (!isAmong(client.redirect_uris, redirect_uri)) throw new errors.InvalidRedirectUri();
  if (lacksProof(client, code_challenge)) {
    throw new errors.InvalidRequest("The client has to use PKCE by now: go back and start again");
  }
}

/** Whether the client would be given the code now. */
export function isCodeGood(client: ClientMetadata, record: Record<string, unknown>): boolean {
  const { redirectUri, codeChallenge } = record;
  return isAmong(client.redirect_uris, redirectUri) && !lacksProof(client, codeChallenge);
}

/** Without its address where the client is not registered for that any more. */
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

/** Whether the address is one of these, as redirect URIs are compared. */
export const isAmong = (registered: readonly string[] | undefined, uri: unknown) =>
  typeof uri === "string" && registered?.some((known) => matchesRedirectUri(known, uri)) === true;

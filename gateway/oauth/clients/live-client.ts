/** A client as the library knows it: looked up at every request, so that a change, a secret and a deletion hold at once. */
import type { Provider } from "oidc-provider";
import type { z } from "zod";
import type { ActorClient } from "../../../actors/runtime/actor-client.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { COMMAND_LINE_CLIENT_ID } from "../../../schemas/oauth/command-line.ts";
import { oauthClient } from "../../../schemas/oauth/oauth-client.ts";
import { isNativeClient } from "../../../schemas/oauth/oauth-client-settings.ts";
import type { Scope } from "../../../schemas/oauth/scopes.ts";
import { Id } from "../../../schemas/values.ts";
import { COMMAND_LINE_CLIENT } from "./command-line-client.ts";

export type LiveClient = z.output<(typeof oauthClient.messages.getForAuthorization)["reply"]>;

/** Undefined when there is none, or none any more. */
export async function findClient(
  actors: ActorClient,
  clientId: string,
): Promise<LiveClient | undefined> {
  if (!Id.safeParse(clientId).success) return undefined;
  if (clientId === COMMAND_LINE_CLIENT_ID) return COMMAND_LINE_CLIENT;
  try {
    return await actors.call(oauthClient, clientId, "getForAuthorization", {});
  } catch (error) {
    if (error instanceof ActorError && error.code === "not_found") return undefined;
    throw error;
  }
}

/** What a client may ask for. */
export function scopesOf({ scopes, grantTypes }: Pick<LiveClient, "scopes" | "grantTypes">) {
  const offline: Scope[] = grantTypes.includes("refresh_token") ? ["offline_access"] : [];
  return new Set<Scope>([...scopes, ...offline]);
}

/** The metadata that the library checks; what is ours goes beside it. */
export function metadataOf(clientId: string, client: LiveClient) {
  const { redirectUris, postLogoutRedirectUris, tokenEndpointAuthMethod: method } = client;
  return {
    client_id: clientId,
    redirect_uris: redirectUris,
    post_logout_redirect_uris: postLogoutRedirectUris,
    grant_types: client.grantTypes,
    response_types: client.responseTypes,
    token_endpoint_auth_method: method,
    application_type: isNativeClient(client) ? "native" : "web",
    // The library wants one; what is compared are the hashes.
    ...(method === "none" ? {} : { client_secret: "kept elsewhere" }),
    registration: {
      accountId: client.accountId,
      visibility: client.visibility,
      scopes: [...scopesOf(client)],
      optionalScopes: client.optionalScopes,
      allowedCorsOrigins: client.allowedCorsOrigins,
      secrets: client.secrets.map(({ id, hash, lastUsedAt = 0 }) => ({ id, hash, lastUsedAt })),
    },
  };
}

/** Of `metadataOf`, as the library gives it back. */
export type Registered = ReturnType<typeof metadataOf>["registration"];

export type Client = InstanceType<Provider["Client"]>;

export const registrationOf = (client: Client | undefined) =>
  client?.registration as Registered | undefined;

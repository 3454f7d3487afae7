/** The current settings of an OAuth client, and the metadata that oidc-provider reads. */
import type { Provider } from "oidc-provider";
import type { z } from "zod";
import type { oauthClient } from "../../../schemas/oauth/oauth-client.ts";
import { isNativeClient } from "../../../schemas/oauth/oauth-client-settings.ts";
import type { Scope } from "../../../schemas/oauth/scopes.ts";

export type LiveClient = z.output<(typeof oauthClient.messages.getForAuthorization)["reply"]>;

/** The scopes that a client may request. */
export function scopesOf({ scopes, grantTypes }: Pick<LiveClient, "scopes" | "grantTypes">) {
  const offline: Scope[] = grantTypes.includes("refresh_token") ? ["offline_access"] : [];
  return new Set<Scope>([...scopes, ...offline]);
}

export type ClientMetadata = ReturnType<typeof metadataOf>;

/** The metadata that oidc-provider checks. Our own fields are in `registration`. */
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
    // oidc-provider requires a client secret here. It is a placeholder, because the server compares the hashes of
    // secrets instead.
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

/** The `registration` of `metadataOf`, which oidc-provider returns unchanged. */
export type Registered = ClientMetadata["registration"];

export type Client = InstanceType<Provider["Client"]>;

export const registrationOf = (client: Client | undefined) =>
  client?.registration as Registered | undefined;

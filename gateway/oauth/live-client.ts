/** A client as the library knows it: looked up at every request, so that a change, a secret and a deletion hold at once. */
import { timingSafeEqual } from "node:crypto";
import type { z } from "zod";
import type { ActorClient } from "../../actors/runtime/actor-client.ts";
import { ActorError } from "../../schemas/errors.ts";
import { oauthClient } from "../../schemas/oauth-client.ts";
import type { Scope } from "../../schemas/scopes.ts";
import { Id } from "../../schemas/values.ts";

export type LiveClient = z.output<(typeof oauthClient.messages.getForAuthorization)["reply"]>;

/** Undefined when there is none, or none any more. */
export async function findClient(
  actors: ActorClient,
  clientId: string,
): Promise<LiveClient | undefined> {
  if (!Id.safeParse(clientId).success) return undefined;
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
  const all = [...redirectUris, ...postLogoutRedirectUris];
  const hasOwnScheme = all.some((uri) => !/^https?:/.test(uri));
  return {
    client_id: clientId,
    redirect_uris: redirectUris,
    post_logout_redirect_uris: postLogoutRedirectUris,
    grant_types: client.grantTypes,
    response_types: client.responseTypes,
    token_endpoint_auth_method: method,
    application_type: hasOwnScheme ? "native" : "web",
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

/** The secret that this is, or undefined; every one is compared, however soon one matches. */
export function matchingSecret({ secrets }: Registered, hash: string) {
  const given = Buffer.from(hash, "hex");
  const [match] = secrets.filter((secret) =>
    timingSafeEqual(Buffer.from(secret.hash, "hex"), given),
  );
  return match;
}

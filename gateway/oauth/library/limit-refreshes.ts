/** Limits how many refresh tokens the clients of one account, or the programs of one person, exchange. */
import type { KoaContextWithOIDC } from "oidc-provider";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { requestLimit } from "../../../schemas/account/request-limit.ts";
import { REQUEST_WINDOW_MS } from "../../../schemas/limits.ts";
import { registrationOf } from "../clients/live-client.ts";
import type { FoundToken } from "./request-records.ts";
import { TooManyRequests } from "./throttle.ts";

/**
 * Counts a refresh whose client has authenticated; `found` is its refresh token. Refuses it past `limit` refreshes in
 * REQUEST_WINDOW_MS; 0 means no limit. Codes are not counted: they live for a minute only, and authorization requests
 * have a limit.
 */
export async function countRefresh(
  actors: ActorClient,
  context: KoaContextWithOIDC | undefined,
  { found, limit }: { found: FoundToken | undefined; limit: number },
): Promise<void> {
  if (limit === 0 || !context) return;
  const owner = ownerOf(context, found);
  if (owner === undefined) return;
  const window = { limit, windowMs: REQUEST_WINDOW_MS };
  const key = `refreshes-of ${owner}`;
  const { allowed, resetS } = await actors.call(requestLimit, key, "take", window);
  if (allowed) return;
  context.set("Retry-After", String(resetS));
  throw new TooManyRequests(
    `Cannot refresh: ${limit} refreshes in ${REQUEST_WINDOW_MS / 1_000} seconds are used up`,
  );
}

/**
 * Returns the owner of the window: the account of a client that has authenticated with its secret. A client without a
 * secret proves nothing, because everybody knows its id, so its requests count for the person whose token it sends.
 * The limit of failed authentications counts its unknown tokens.
 */
function ownerOf({ oidc }: KoaContextWithOIDC, found: FoundToken | undefined): string | undefined {
  const { client, route } = oidc;
  if (route !== "token" || !client) return undefined;
  if (client.clientAuthMethod !== "none") return registrationOf(client)?.accountId;
  return found?.grant.clientId === client.clientId ? `person ${found.grant.userId}` : undefined;
}

/**
 * Looks up the OAuth client at every request, so that a changed setting, a new secret or a deletion has an effect
 * immediately.
 */
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { COMMAND_LINE_CLIENT_ID } from "../../../schemas/oauth/command-line.ts";
import { oauthClient } from "../../../schemas/oauth/oauth-client.ts";
import { Id } from "../../../schemas/values.ts";
import { COMMAND_LINE_CLIENT } from "./command-line-client.ts";
import type { LiveClient } from "./live-client.ts";

/** Resolves to undefined if no client has this id. */
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

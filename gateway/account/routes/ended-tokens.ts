/** Removes API tokens, and finds those that have ended: they give their places to new ones at the account's limit. */
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { account, type TokenEntry } from "../../../schemas/account/account.ts";
import { apiToken } from "../../../schemas/account/api-token.ts";
import type { Input } from "../../../schemas/contract.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { oauthGrant } from "../../../schemas/oauth/oauth-grant.ts";
import { callFew } from "../../http/call-few.ts";

interface Place {
  actors: ActorClient;
  accountId: string;
  now: number;
}

/**
 * Adds a token to the account's list. At the limit, it removes a token that has ended and tries again. Refuses as
 * `limit_reached` if none has ended.
 */
export async function addWithRoom(
  place: Place,
  token: Input<(typeof account)["messages"]["createToken"]>,
): Promise<TokenEntry> {
  const { actors, accountId } = place;
  try {
    return await actors.call(account, accountId, "createToken", token);
  } catch (error) {
    const isFull = error instanceof ActorError && error.code === "limit_reached";
    const ended = isFull ? await findEnded(place) : undefined;
    if (!ended) throw error;
    // Another request may have removed it at the same time, and may take its place too. Then there may be another one.
    await removeToken(actors, accountId, ended.id).catch(ignoreUnknown);
    return addWithRoom(place, token);
  }
}

/** Revokes a token and removes it from the list. The list contains every valid token, so the token is revoked first. */
export async function removeToken(actors: ActorClient, accountId: string, id: string) {
  await actors.call(apiToken, id, "revoke", {});
  await actors.call(account, accountId, "removeToken", { id });
}

/** Resolves to whether the grant of a token has ended; false for a token without a grant. */
export async function hasEnded(actors: ActorClient, grantId: string | undefined): Promise<boolean> {
  if (grantId === undefined) return false;
  try {
    await actors.call(oauthGrant, grantId, "get", {});
    return false;
  } catch (error) {
    ignoreUnknown(error);
    return true;
  }
}

/**
 * Resolves to a token that has ended: one whose grant has ended, as it never opens anything again. If there is none, it
 * is the token that expired first: its owner could still prolong it.
 */
async function findEnded({ actors, accountId, now }: Place): Promise<TokenEntry | undefined> {
  const { tokens } = await actors.call(account, accountId, "listTokens", {});
  const ended = await callFew(tokens, ({ grantId }) => hasEnded(actors, grantId));
  return (
    tokens.find((_token, index) => ended[index]) ??
    tokens.filter((token) => endOf(token) <= now).sort((one, other) => endOf(one) - endOf(other))[0]
  );
}

const endOf = ({ expiresAt = Number.POSITIVE_INFINITY }: TokenEntry) => expiresAt;

function ignoreUnknown(error: unknown): void {
  if (!(error instanceof ActorError && error.code === "not_found")) throw error;
}

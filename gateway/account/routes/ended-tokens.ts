/** Finds and removes ended API tokens, so that new ones can be created at the account's limit. */
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { account, type TokenEntry } from "../../../schemas/account/account.ts";
import { apiToken } from "../../../schemas/account/api-token.ts";
import type { Input } from "../../../schemas/contract.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { callFew } from "../../http/call-few.ts";
import type { Caller } from "../../http/locals.ts";
import { hasGrantEnded } from "../has-grant-ended.ts";
import { holds } from "./token-checks.ts";

interface Place {
  actors: ActorClient;
  caller: Caller;
  now: number;
}

/**
 * Adds a token to the account's list. At the limit, it removes a token that has ended and tries again. Refuses as
 * `limit_reached` if no token that it may remove has ended.
 */
export async function addWithRoom(
  place: Place,
  token: Input<(typeof account)["messages"]["createToken"]>,
): Promise<TokenEntry> {
  const { actors, caller } = place;
  try {
    return await actors.call(account, caller.accountId, "createToken", token);
  } catch (error) {
    const isFull = error instanceof ActorError && error.code === "limit_reached";
    if (!isFull || !(await removeOneEnded(place))) throw error;
    return addWithRoom(place, token);
  }
}

/** Revokes a token and removes it from the list. The list contains every valid token, so the token is revoked first. */
export async function removeToken(actors: ActorClient, accountId: string, id: string) {
  await actors.call(apiToken, id, "revoke", {});
  await actors.call(account, accountId, "removeToken", { id });
}

/** Resolves to whether the token's grant can never open the account again; false for a token without a grant. */
export async function hasEnded(
  actors: ActorClient,
  accountId: string,
  { grantId }: Pick<TokenEntry, "grantId">,
): Promise<boolean> {
  return grantId !== undefined && (await hasGrantEnded(actors, { grantId, accountId }));
}

/**
 * Removes a token whose grant has ended, which never becomes valid again. If there is none, it removes the token that
 * expired first among those that the caller may delete: its owner could still prolong it. Resolves to whether it
 * removed one.
 */
async function removeOneEnded({ actors, caller, now }: Place): Promise<boolean> {
  const { accountId } = caller;
  const { tokens } = await actors.call(account, accountId, "listTokens", {});
  const ended = await callFew(tokens, (token) => hasEnded(actors, accountId, token));
  const granted = tokens.find((_token, index) => ended[index]);
  if (granted) {
    // Another request may have removed it at the same time, and may take its place too. Then there may be another one.
    await removeToken(actors, accountId, granted.id).catch(ignoreUnknown);
    return true;
  }
  const expired = tokens
    .filter((token) => endOf(token) <= now && holds(token.permissions, caller))
    .sort((one, other) => endOf(one) - endOf(other));
  for (const { id } of expired) {
    if (!(await revokeExpired(actors, id))) continue;
    await actors.call(account, accountId, "removeToken", { id }).catch(ignoreUnknown);
    return true;
  }
  return false;
}

/**
 * Resolves to false if the token has not expired: it was prolonged, and the account's list does not show that yet. It
 * also resolves to false if the token's host is of an earlier version, which cannot revoke only expired tokens.
 */
async function revokeExpired(actors: ActorClient, id: string): Promise<boolean> {
  try {
    await actors.call(apiToken, id, "revokeExpired", {});
    return true;
  } catch (error) {
    const isRefused =
      error instanceof ActorError &&
      (error.code === "conflict" || error.code === "invalid_request");
    if (isRefused) return false;
    throw error;
  }
}

const endOf = ({ expiresAt = Number.POSITIVE_INFINITY }: TokenEntry) => expiresAt;

function ignoreUnknown(error: unknown): void {
  if (!(error instanceof ActorError && error.code === "not_found")) throw error;
}

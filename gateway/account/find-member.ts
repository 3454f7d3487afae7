/** Finds a member of an account by asking the account's actor. */
import type { ActorClient, CallOptions } from "../../actors/runtime/calls/actor-client.ts";
import { account, type Member } from "../../schemas/account/account.ts";
import { ActorError } from "../../schemas/errors.ts";

/** Resolves to undefined if the account does not exist or the user is not a member of it. */
export async function findMember(
  actors: ActorClient,
  accountId: string,
  userId: string,
  options: CallOptions = {},
): Promise<Member | undefined> {
  try {
    return await actors.call(account, accountId, "getMember", { userId }, options);
  } catch (error) {
    if (error instanceof ActorError && error.code === "not_found") return undefined;
    throw error;
  }
}

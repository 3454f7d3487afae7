/** Decides whether an OAuth grant can never open an account again. */
import type { ActorClient, CallOptions } from "../../actors/runtime/calls/actor-client.ts";
import { ActorError } from "../../schemas/errors.ts";
import { oauthGrant } from "../../schemas/oauth/oauth-grant.ts";
import { coversMembership } from "./covers-membership.ts";
import { findMember } from "./find-member.ts";

/**
 * Resolves to true if the grant has ended, or if its person has left the account since the consent. Both are permanent:
 * if the person joins again, this is another membership.
 */
export async function hasGrantEnded(
  actors: ActorClient,
  { grantId, accountId }: { grantId: string; accountId: string },
  options: CallOptions = {},
): Promise<boolean> {
  try {
    const grant = await actors.call(oauthGrant, grantId, "get", {}, options);
    const member = await findMember(actors, accountId, grant.userId, options);
    return member === undefined || !coversMembership(grant, member);
  } catch (error) {
    if (error instanceof ActorError && error.code === "not_found") return true;
    throw error;
  }
}

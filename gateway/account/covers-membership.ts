/** Decides whether a consent to a client counts for the person's present membership of an account. */
import type { Member } from "../../schemas/account/account.ts";
import type { DeepReadonly } from "../../schemas/contract.ts";
import type { Consent } from "../../schemas/oauth/oauth-grant.ts";

/**
 * Returns whether the person has been a member since the consent to this account. Each membership has its own
 * invitation. Times are not compared: the clocks of the hosts that store them may differ.
 */
export function coversMembership(
  { invitationIds = [] }: DeepReadonly<Pick<Consent, "invitationIds">>,
  { invitationId }: DeepReadonly<Pick<Member, "invitationId">>,
): boolean {
  return invitationId === undefined || invitationIds.includes(invitationId);
}

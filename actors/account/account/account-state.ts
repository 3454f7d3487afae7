/** State of an account. */
import { z } from "zod";
import { Invitation, Member, TokenEntry } from "../../../schemas/account/account.ts";
import { EpochMs, Id, Sha256 } from "../../../schemas/values.ts";

/** Converts a member of the first release, in which a member had only one role. */
const StoredMember = z.preprocess((stored) => {
  if (typeof stored !== "object" || stored === null || !("role" in stored)) return stored;
  const { role, ...member } = stored;
  return { ...member, roles: [role] };
}, Member);

export const StoredInvitation = Invitation.extend({
  secretHash: Sha256.meta({ secret: true }),
  /** The person who gave the invitation its roles; absent if unknown, and in invitations of earlier versions. */
  invitedBy: Id.optional(),
});
export type StoredInvitation = z.infer<typeof StoredInvitation>;

/** Ignores `usage` and `countedTasks`, the browser time that earlier versions stored here. */
export const AccountState = z.object({
  /** 0 until the account is opened. */
  createdAt: EpochMs,
  name: z.string(),
  members: z.array(StoredMember),
  /** Invitations, the oldest first. Creating an invitation removes expired ones. */
  invitations: z.array(StoredInvitation).default([]),
  tokens: z.array(TokenEntry),
});
export type AccountState = z.infer<typeof AccountState>;

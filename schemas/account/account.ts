/**
 * Messages of the actor that stores an account: its name, members and API tokens. The key is the account's id.
 */
import { z } from "zod";
import { defineContract } from "../contract.ts";
import { ACCOUNT_NAME_CHARS_MAX, TOKEN_NAME_CHARS_MAX } from "../limits.ts";
import { tellAgain } from "../tell-again.ts";
import { Email, EpochMs, Id, Sha256 } from "../values.ts";
import { GrantId } from "./api-token.ts";
import { MEMBERS_PER_ACCOUNT_MAX } from "./limits.ts";
import { ALL_PERMISSIONS, ALL_ROLES, Permission, Role } from "./permissions.ts";

export const Roles = z
  .array(Role)
  .min(1)
  .max(ALL_ROLES.length)
  .refine((roles) => new Set(roles).size === roles.length, { error: "Expected no duplicates" })
  .meta({ uniqueItems: true });

export const Member = z.object({
  userId: Id,
  email: Email,
  roles: Roles,
  /**
   * The invitation by which the member joined, so that a person who left and joined again has another membership.
   * Absent for the person who opened the account, and for members who joined before this was stored.
   */
  invitationId: Id.optional(),
});
export type Member = z.infer<typeof Member>;

/** An invitation. Its secret makes the user with this e-mail address a member. */
export const Invitation = z.object({
  id: Id,
  email: Email,
  roles: Roles,
  invitedAt: EpochMs,
  expiresAt: EpochMs,
});
export type Invitation = z.infer<typeof Invitation>;

/**
 * The caller who changes members: the permissions of the token, and the person. An API token stands for its owner,
 * whom the account looks up by the token's id. A caller cannot give a role with more permissions than the caller has,
 * and cannot change a member who has such a role.
 */
export const MemberChanger = z.object({
  userId: Id.optional(),
  tokenId: z.string().max(128).optional(),
  permissions: z.array(Permission).max(ALL_PERMISSIONS.length),
});
export type MemberChanger = z.infer<typeof MemberChanger>;

/** An API token without its secret. Only the actor of the kind `api-token` stores a hash of the secret. */
export const TokenEntry = z.object({
  id: Id,
  name: z.string().min(1).max(TOKEN_NAME_CHARS_MAX),
  permissions: z.array(Permission).min(1),
  /** The secret's last characters, so that a person can tell tokens apart. */
  lastFour: z.string().length(4),
  createdAt: EpochMs,
  notBeforeAt: EpochMs.optional(),
  expiresAt: EpochMs.optional(),
  grantId: GrantId,
  isDisabled: z.boolean().optional(),
  /**
   * The owner of the token: the person who created it, directly or with another token. Tokens of the first release
   * have none.
   */
  userId: Id.optional(),
  /** Number of changes of the token that this entry shows. */
  changes: z.int().min(0).optional(),
  /** Time of the last use, with a precision of TOKEN_USED_EVERY_MS. */
  lastUsedAt: EpochMs.optional(),
});
export type TokenEntry = z.infer<typeof TokenEntry>;

const AccountName = z.string().min(1).max(ACCOUNT_NAME_CHARS_MAX);
const Nothing = z.object({});

export const account = defineContract({
  kind: "account",
  messages: {
    /**
     * Creates the account. Repeating the call with the same owner changes nothing. Refuses as `conflict` with another
     * owner.
     */
    open: { input: z.object({ name: AccountName, owner: Member }), reply: Nothing },
    get: {
      input: Nothing,
      reply: z.object({ name: AccountName, createdAt: EpochMs, members: z.array(Member) }),
    },

    /**
     * Returns a member with the current roles. This actor decides about roles; the copy in `user` is updated later,
     * by mail.
     */
    getMember: { input: z.object({ userId: Id }), reply: Member },
    listMembers: {
      input: Nothing,
      reply: z.object({
        members: z.array(Member).max(MEMBERS_PER_ACCOUNT_MAX),
        /** Invitations that open the account. */
        invitations: z.array(Invitation).max(MEMBERS_PER_ACCOUNT_MAX),
      }),
    },
    /** Invites an e-mail address. A second invitation of the same address replaces the first. */
    invite: {
      input: z.object({
        id: Id,
        email: Email,
        roles: Roles,
        secretHash: Sha256.meta({ secret: true }),
        by: MemberChanger,
      }),
      reply: Invitation,
    },
    /** Changes the roles of a member or an invitation. Here and below, `id` is the id of a user or an invitation. */
    setRoles: { input: z.object({ id: Id, roles: Roles, by: MemberChanger }), reply: Nothing },
    /**
     * Removes a member or an invitation. Refuses as `conflict` to remove the last Super Administrator. `setRoles`
     * refuses in the same way to take this role from the last one.
     */
    removeMember: { input: z.object({ id: Id, by: MemberChanger }), reply: Nothing },
    /**
     * Removes a member who leaves by themselves, which needs no permission. Refuses as `conflict` for the last Super
     * Administrator.
     */
    leave: { input: z.object({ userId: Id }), reply: Nothing },
    /** Sent by a gateway: repeats the live update about members. */
    tellAgain,
    /**
     * Returns an invitation to the holder of its secret. `not_found` if it is unknown, used or expired, or if the person
     * who gave it may not give its roles any more.
     */
    getInvitation: {
      input: z.object({ id: Id, secretHash: Sha256.meta({ secret: true }) }),
      reply: Invitation.extend({ accountName: AccountName }),
    },
    /**
     * Makes a registered user a member, and notifies the actor `user` by mail. Refuses as `not_found` for the same
     * reasons as `getInvitation`, and as `forbidden` for a user with another e-mail address. Repeating the call
     * changes nothing.
     */
    acceptInvitation: {
      input: z.object({
        id: Id,
        secretHash: Sha256.meta({ secret: true }),
        userId: Id,
        email: Email,
      }),
      reply: z.object({ roles: Roles }),
    },

    createToken: {
      input: TokenEntry.omit({ createdAt: true, lastUsedAt: true }),
      reply: TokenEntry,
    },
    listTokens: { input: Nothing, reply: z.object({ tokens: z.array(TokenEntry) }) },
    getToken: { input: z.object({ id: Id }), reply: TokenEntry },
    /**
     * Replaces all fields of a token, except the times of its creation and last use, its owner, and the grant from
     * which it comes. With `only`, it replaces that field alone. Changes nothing if the entry shows more `changes`
     * already: requests that change a token at the same time may arrive here in another order.
     */
    changeToken: {
      input: TokenEntry.omit({
        ...{ createdAt: true, grantId: true, userId: true, lastUsedAt: true },
      }).extend({ only: z.literal("lastFour").optional() }),
      reply: TokenEntry,
    },
    /** Sent by the token's own actor, which reports a use at most once in TOKEN_USED_EVERY_MS. */
    tokenUsed: { input: z.object({ id: Id, at: EpochMs }) },
    removeToken: { input: z.object({ id: Id }), reply: Nothing },
  },
  /** Published after each change of members or their roles. */
  live: z.object({ change: z.literal("members") }),
});

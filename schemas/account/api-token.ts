/**
 * Messages of the actor of an API token, which verifies the token's secret and returns its permissions. The key is
 * the token's id.
 */
import { z } from "zod";
import { defineContract } from "../contract.ts";
import { EpochMs, Id, Sha256 } from "../values.ts";
import { Permission } from "./permissions.ts";

/**
 * The grant of the OAuth access token that created this API token. It limits the permissions and the lifetime of the
 * API token.
 */
export const GrantId = Id.optional();

/** The permissions of a token, and the time in which it is valid. */
const Opens = z.object({
  permissions: z.array(Permission).min(1),
  notBeforeAt: EpochMs.optional(),
  expiresAt: EpochMs.optional(),
  /** A disabled token is refused until it is enabled again. */
  isDisabled: z.boolean().optional(),
});

export const apiToken = defineContract({
  kind: "api-token",
  messages: {
    /**
     * Issues the token. Repeating the call changes nothing. Refuses as `conflict` if the token was revoked or has
     * another secret.
     */
    issue: {
      input: z.object({
        accountId: Id,
        permissions: z.array(Permission).min(1),
        secretHash: Sha256,
        notBeforeAt: EpochMs.optional(),
        expiresAt: EpochMs.optional(),
        grantId: GrantId,
      }),
      reply: z.object({}),
    },
    /** Verifies the secret. Refuses as `unauthenticated`, whatever the reason. */
    verify: {
      input: z.object({ secretHash: Sha256 }),
      reply: z.object({
        accountId: Id,
        permissions: z.array(Permission),
        notBeforeAt: EpochMs.optional(),
        expiresAt: EpochMs.optional(),
        grantId: GrantId,
        /** Time of the last use, with a precision of TOKEN_USED_EVERY_MS. */
        lastUsedAt: EpochMs.optional(),
      }),
    },
    /**
     * Sent by the gateway when the token was used and its stored last use is at least TOKEN_USED_EVERY_MS old.
     */
    used: { input: z.object({}) },
    /**
     * Replaces `opens`, the secret, or both of an issued token. A new `opens` replaces all its fields: an absent time
     * or `isDisabled` is removed. Replies with the number of changes of `opens` so far; a host of an earlier version
     * does not count them.
     */
    change: {
      input: z.object({
        opens: Opens.optional(),
        secretHash: Sha256.optional(),
      }),
      reply: z.object({ changes: z.int().min(0).optional() }),
    },
    /** Revokes the token permanently: its id is never issued again. */
    revoke: { input: z.object({}), reply: z.object({}) },
    /**
     * Revokes the token if its time has ended, and may be repeated. Refuses as `conflict` if the token is issued and has
     * not expired.
     */
    revokeExpired: { input: z.object({}), reply: z.object({}) },
    /** Reminder: deletes the state of a revoked token. */
    forget: { input: z.object({}) },
  },
});

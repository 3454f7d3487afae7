/** The contract of an API token: verifies its secret and returns its permissions. The key is the token's id. */
import { z } from "zod";
import { defineContract } from "../contract.ts";
import { EpochMs, Id, Sha256 } from "../values.ts";
import { Permission } from "./permissions.ts";

/** The grant of the OAuth access token that created this token. It bounds the token's permissions and lifetime. */
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
    /** Repeating it changes nothing. A token that was revoked, or has another secret, is a conflict. */
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
    /** Refuses as `unauthenticated`, whatever the reason. */
    verify: {
      input: z.object({ secretHash: Sha256 }),
      reply: z.object({
        accountId: Id,
        permissions: z.array(Permission),
        notBeforeAt: EpochMs.optional(),
        expiresAt: EpochMs.optional(),
        grantId: GrantId,
      }),
    },
    /**
     * Replaces an issued token's permissions or secret. Absent fields stay, except times, which are replaced
     * together.
     */
    change: {
      input: z.object({
        opens: Opens.optional(),
        secretHash: Sha256.optional(),
      }),
      reply: z.object({}),
    },
    /** Revokes the token permanently: its id is never issued again. */
    revoke: { input: z.object({}), reply: z.object({}) },
  },
});

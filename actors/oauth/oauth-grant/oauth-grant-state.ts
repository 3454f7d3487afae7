/** State of a grant: hashes of the issued codes and tokens, never a token itself. */
import { z } from "zod";
import { GrantEntry, GrantToken } from "../../../schemas/oauth/oauth-grant.ts";
import { EpochMs } from "../../../schemas/values.ts";

/** A code or refresh token, with the time of its first use; absent if it was not used. */
const Used = GrantToken.extend({ usedAt: EpochMs.optional() });
/** The first half of the hash of the refresh token for which a token was issued. */
const from = z.string().optional();
const Refresh = Used.extend({
  from,
  /** Whether a token that was issued for this one was used, which proves that the client received it. */
  isConfirmed: z.boolean().optional(),
  /** How often the token was used again after its grace period. */
  retries: z.int().min(0).optional(),
});

export const OAuthGrantState = z.discriminatedUnion("status", [
  z.object({ status: z.literal("none") }),
  z.object({
    status: z.literal("open"),
    grant: GrantEntry,
    code: Used,
    /** This list and the lists below are sorted from the oldest to the newest. */
    access: z.array(GrantToken.extend({ from })),
    refresh: z.array(Refresh),
    /**
     * The first half of the hash of each refresh token that must not appear again: used ones whose grace period is
     * over, and those that a later retry has replaced.
     */
    usedRefresh: z.array(z.string()),
  }),
]);
export type OAuthGrantState = z.infer<typeof OAuthGrantState>;
export type OpenGrant = Extract<OAuthGrantState, { status: "open" }>;

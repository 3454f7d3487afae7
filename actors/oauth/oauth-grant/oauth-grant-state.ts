/** State of a grant: hashes of the issued codes and tokens, never a token itself. */
import { z } from "zod";
import { GrantEntry, GrantToken } from "../../../schemas/oauth/oauth-grant.ts";
import { EpochMs } from "../../../schemas/values.ts";

/** A code or refresh token, with the time of its first use; absent if it was not used. */
const Used = GrantToken.extend({ usedAt: EpochMs.optional() });

export const OAuthGrantState = z.discriminatedUnion("status", [
  z.object({ status: z.literal("none") }),
  z.object({
    status: z.literal("open"),
    grant: GrantEntry,
    code: Used,
    /** This list and the lists below are sorted from the oldest to the newest. */
    access: z.array(GrantToken),
    refresh: z.array(Used),
    /** The first half of the hash of each used refresh token whose grace period is over. */
    usedRefresh: z.array(z.string()),
  }),
]);
export type OAuthGrantState = z.infer<typeof OAuthGrantState>;
export type OpenGrant = Extract<OAuthGrantState, { status: "open" }>;

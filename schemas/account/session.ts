/** The contract of a browser in which somebody signed in. The key is the session's id, half of what its cookie says. */
import { z } from "zod";
import { defineContract } from "../contract.ts";
import { Email, EpochMs, Id, Sha256 } from "../values.ts";
import { LOGOUT_TEXT_CHARS_MAX } from "./limits.ts";

/** A sign-out that a client requested and the person has not confirmed yet. */
export const PendingLogout = z.object({
  secret: z.string().max(64),
  clientId: z.string().max(64).optional(),
  state: z.string().max(LOGOUT_TEXT_CHARS_MAX).optional(),
  postLogoutRedirectUri: z.string().max(LOGOUT_TEXT_CHARS_MAX).optional(),
});
export type PendingLogout = z.infer<typeof PendingLogout>;

const Secret = z.object({ secretHash: Sha256.meta({ secret: true }) });
const Nothing = z.object({});

export const SessionEntry = z.object({
  /** Absent if nobody is signed in. The first release stored sign-outs without a user for some minutes. */
  user: z.object({ userId: Id, email: Email, authenticatedAt: EpochMs }).optional(),
  expiresAt: EpochMs,
  logout: PendingLogout.optional(),
});
export type SessionEntry = z.infer<typeof SessionEntry>;

export const session = defineContract({
  kind: "session",
  messages: {
    /** Repeating it with the same secret changes nothing. */
    open: { input: Secret.extend({ userId: Id, email: Email }), reply: Nothing },
    /** Refuses as `unauthenticated`, whatever the reason. */
    get: { input: Secret, reply: SessionEntry },
    /** Shows a session to its person. `not_found` for another's, and when it has ended. */
    describe: {
      input: z.object({ userId: Id }),
      reply: z.object({ authenticatedAt: EpochMs, expiresAt: EpochMs }),
    },
    /** Keeps a sign-out that is to be confirmed; where nobody is signed in, nothing. */
    awaitLogout: { input: Secret.extend({ logout: PendingLogout.optional() }), reply: Nothing },
    /** Ends the session permanently. Repeating it changes nothing. */
    end: { input: Nothing, reply: Nothing },
    /** Sent by a user after a password change, or past the limit of sessions. */
    signedOut: { input: Nothing },
    /** Reminder. */
    expire: { input: Nothing },
  },
});

/**
 * Messages of the actor of a session: a browser in which a person has signed in. The key is the session's id, which
 * is derived from the text of the cookie.
 */
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
  /**
   * The signed-in user; absent if nobody is signed in. The first release stored sign-outs without a user for some
   * minutes.
   */
  user: z.object({ userId: Id, email: Email, authenticatedAt: EpochMs }).optional(),
  expiresAt: EpochMs,
  logout: PendingLogout.optional(),
});
export type SessionEntry = z.infer<typeof SessionEntry>;

export const session = defineContract({
  kind: "session",
  messages: {
    /** Opens the session. Repeating the call with the same secret changes nothing. */
    open: { input: Secret.extend({ userId: Id, email: Email }), reply: Nothing },
    /** Returns the session. Refuses as `unauthenticated`, whatever the reason. */
    get: { input: Secret, reply: SessionEntry },
    /**
     * Returns a session to its person. Refuses as `not_found` for a session of another person, and if the session has
     * ended.
     */
    describe: {
      input: z.object({ userId: Id }),
      reply: z.object({ authenticatedAt: EpochMs, expiresAt: EpochMs }),
    },
    /**
     * Stores a sign-out that the person must confirm. Without `logout`, removes the stored sign-out. If the session
     * has ended, it changes nothing.
     */
    awaitLogout: { input: Secret.extend({ logout: PendingLogout.optional() }), reply: Nothing },
    /** Ends the session permanently. Repeating the call changes nothing. */
    end: { input: Nothing, reply: Nothing },
    /** Sent by the actor `user` after a password change, or past the limit of sessions. Ends the session. */
    signedOut: { input: Nothing },
    /** Reminder: ends the session when its lifetime is over. */
    expire: { input: Nothing },
  },
});

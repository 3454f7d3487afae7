/**
 * Messages of the actor of a user: a person who signs in, and the accounts they belong to. The key is the e-mail
 * address.
 */
import { z } from "zod";
import { defineContract } from "../contract.ts";
import { Email, Id, PasswordVersion } from "../values.ts";
import { Roles } from "./account.ts";
import { SESSIONS_PER_USER_MAX } from "./limits.ts";

export const Membership = z.object({ accountId: Id, roles: Roles });

const PasswordHash = z.string().min(1).max(512).meta({ secret: true });
const SessionOfUser = z.object({ userId: Id, sessionId: Id });

export const user = defineContract({
  kind: "user",
  messages: {
    /**
     * Registers the user. Repeating the call with the same id changes nothing. Refuses as `conflict` with another id.
     */
    register: {
      input: z.object({
        id: Id,
        email: Email,
        passwordHash: PasswordHash,
        /** The user's accounts; empty for an invited user, who becomes a member later. */
        accounts: z.array(Membership),
      }),
      reply: z.object({}),
    },
    /**
     * Sent by an account when the user became a member or got other roles. A message for another user id is late and
     * changes nothing.
     */
    joined: { input: Membership.extend({ userId: Id }) },
    left: { input: z.object({ userId: Id, accountId: Id }) },
    get: {
      input: z.object({}),
      reply: z.object({ id: Id, email: Email, accounts: z.array(Membership) }),
    },

    /**
     * Returns the hash of the password. The gateway checks the password, because a check takes too long for an actor.
     */
    getPassword: {
      input: z.object({}),
      reply: z.object({ id: Id, passwordHash: PasswordHash, passwordVersion: PasswordVersion }),
    },
    /**
     * Replaces the hash of the password. Refuses as `conflict` if the hash is no longer `before`. Ends all sessions
     * except `ends.keep` by mail to their actors, and replies with their ids. If `ends` is absent, the password is
     * the same but was hashed again, and no session ends.
     */
    setPassword: {
      input: z.object({
        before: PasswordHash,
        after: PasswordHash,
        ends: z.object({ keep: Id.nullable() }).optional(),
      }),
      reply: z.object({ ended: z.array(Id).max(SESSIONS_PER_USER_MAX) }),
    },
    /**
     * Records a session before the browser gets its cookie. Refuses as `unauthenticated` if the password was changed
     * after it was checked. Repeating the call changes nothing.
     */
    addSession: {
      input: SessionOfUser.extend({ passwordVersion: PasswordVersion }),
      reply: z.object({}),
    },
    /**
     * Returns the ids of the sessions that may be open, the latest last. Refuses as `not_found` for another user id.
     */
    listSessions: {
      input: z.object({ userId: Id }),
      reply: z.object({ sessionIds: z.array(Id).max(SESSIONS_PER_USER_MAX) }),
    },
    /** Sent by a session when it has ended. */
    sessionEnded: { input: SessionOfUser },
  },
});

/** The contract of a user: a person who signs in, and the accounts they belong to. The key is the e-mail address. */
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
    /** Repeating it with the same id changes nothing; with another it is a conflict. */
    register: {
      input: z.object({
        id: Id,
        email: Email,
        passwordHash: PasswordHash,
        /** Empty for an invited user, who joins later. */
        accounts: z.array(Membership),
      }),
      reply: z.object({}),
    },
    /** Sent by an account. A message for another user id is late and changes nothing. */
    joined: { input: Membership.extend({ userId: Id }) },
    left: { input: z.object({ userId: Id, accountId: Id }) },
    get: {
      input: z.object({}),
      reply: z.object({ id: Id, email: Email, accounts: z.array(Membership) }),
    },

    /** Returns the hash to the gateway, because a password check takes too long for an actor. */
    getPassword: {
      input: z.object({}),
      reply: z.object({ id: Id, passwordHash: PasswordHash, passwordVersion: PasswordVersion }),
    },
    /**
     * `conflict` when the password is another by now. Ends the sessions but `keep`, by mail, and says which; without
     * `ends` it is the same password, hashed anew.
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
     * Sent before the browser gets the session. Refuses as `unauthenticated` when the password changed after its
     * check. Idempotent.
     */
    addSession: {
      input: SessionOfUser.extend({ passwordVersion: PasswordVersion }),
      reply: z.object({}),
    },
    /** Ids of the sessions that may be open, the latest last. `not_found` for another user id. */
    listSessions: {
      input: z.object({ userId: Id }),
      reply: z.object({ sessionIds: z.array(Id).max(SESSIONS_PER_USER_MAX) }),
    },
    /** Sent by a session. */
    sessionEnded: { input: SessionOfUser },
  },
});

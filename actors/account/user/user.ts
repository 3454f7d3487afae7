/** Stores a user: the hash of the password, the accounts that the user belongs to, and the sessions. */

import { SESSIONS_PER_USER_MAX } from "../../../schemas/account/limits.ts";
import { session } from "../../../schemas/account/session.ts";
import { user } from "../../../schemas/account/user.ts";
import { envelope } from "../../../schemas/contract.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { defineActor } from "../../runtime/kinds/define-actor.ts";
import { UserState } from "./user-state.ts";

/**
 * Stored at: e-mail address
 *
 * State: `{ id, email, passwordHash, passwordVersion?, accounts: [{ accountId, roles }], sessions? }`; an empty id is
 * not registered
 */
export const userActor = defineActor(user, {
  state: UserState,
  initial: { id: "", email: "", passwordHash: "", accounts: [] },

  handlers: {
    register(state, input) {
      if (state.id === "") return { state: input, reply: {} };
      if (state.id === input.id) return { state, reply: {} };
      throw new ActorError("conflict", "Cannot register user: the e-mail address is taken");
    },

    joined(state, { userId, accountId, roles }) {
      if (state.id !== userId) return { state };
      const others = state.accounts.filter((membership) => membership.accountId !== accountId);
      return { state: { ...state, accounts: [...others, { accountId, roles }] } };
    },

    left(state, { userId, accountId }) {
      const accounts = state.accounts.filter((membership) => membership.accountId !== accountId);
      const belonged = state.id === userId && accounts.length < state.accounts.length;
      return { state: belonged ? { ...state, accounts } : state };
    },

    get(state, _input, { key }) {
      if (state.id === "")
        throw new ActorError("not_found", `Cannot find user: "${key}" is unknown`);
      const { id, email, accounts } = state;
      return { state, reply: { id, email, accounts } };
    },

    getPassword(state, _input, { key }) {
      if (state.id === "")
        throw new ActorError("not_found", `Cannot find user: "${key}" is unknown`);
      const { id, passwordHash, passwordVersion } = state;
      return { state, reply: { id, passwordHash, passwordVersion } };
    },

    setPassword(state, { before, after, ends }) {
      const done = state.passwordHash === after;
      if (!done && (state.id === "" || state.passwordHash !== before)) {
        throw new ActorError("conflict", "Cannot set password: somebody changed it meanwhile");
      }
      const next = { ...state, passwordHash: after };
      if (!ends) return { state: next, reply: { ended: [] } };
      const { sessions = [], passwordVersion = 0 } = state;
      const ended = sessions.filter((id) => id !== ends.keep);
      return {
        state: {
          ...next,
          passwordVersion: done ? passwordVersion : passwordVersion + 1,
          sessions: sessions.filter((id) => id === ends.keep),
        },
        reply: { ended },
        send: ended.map((id) => envelope(session, id, "signedOut", {})),
      };
    },

    addSession(state, { userId, sessionId, passwordVersion }) {
      const isTheirs = state.id === userId;
      if (isTheirs && state.sessions?.includes(sessionId)) return { state, reply: {} };
      // Refuse a session if the password was changed after the sign-in had checked it. The change could not end this
      // session, because the session was not recorded yet.
      const isStale = (passwordVersion ?? 0) < (state.passwordVersion ?? 0);
      if (!isTheirs || isStale) {
        throw new ActorError(
          "unauthenticated",
          "Cannot sign in: somebody changed the password meanwhile",
        );
      }
      const all = [...(state.sessions ?? []), sessionId];
      const ended = all.slice(0, -SESSIONS_PER_USER_MAX);
      return {
        state: { ...state, sessions: all.slice(-SESSIONS_PER_USER_MAX) },
        reply: {},
        send: ended.map((id) => envelope(session, id, "signedOut", {})),
      };
    },

    listSessions(state, { userId }, { key }) {
      if (state.id !== userId)
        throw new ActorError("not_found", `Cannot find user: "${key}" is another`);
      return { state, reply: { sessionIds: [...(state.sessions ?? [])] } };
    },

    sessionEnded(state, { userId, sessionId }) {
      if (state.id !== userId || !state.sessions?.includes(sessionId)) return { state };
      return { state: { ...state, sessions: state.sessions.filter((id) => id !== sessionId) } };
    },
  },
});

/** Decides whether a browser is still signed in, and which person is signed in. */

import { SESSION_MS } from "../../../schemas/account/limits.ts";
import { session } from "../../../schemas/account/session.ts";
import { user } from "../../../schemas/account/user.ts";
import { type DeepReadonly, envelope } from "../../../schemas/contract.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { defineActor } from "../../runtime/kinds/define-actor.ts";
import { sameHash } from "../lib/hashes/same-hash.ts";
import { SessionState } from "./session-state.ts";

/**
 * Stored at: 32 hex of the cookie's SHA-256
 *
 * State: `{ status: "none" }` or `{ status: "open", secretHash, user?: { userId, email, authenticatedAt }, expiresAt,
 * logout? }`; forgotten when it ends, or after 14 days
 */
export const sessionActor = defineActor(session, {
  state: SessionState,
  initial: { status: "none" },

  handlers: {
    open(state, { secretHash, userId, email }, { now }) {
      if (state.status === "open") {
        if (sameHash(state.secretHash, secretHash)) return { state, reply: {} };
        throw new ActorError("conflict", "Cannot open session: it is there already");
      }
      const expiresAt = now + SESSION_MS;
      const signedIn = { userId, email, authenticatedAt: now };
      return {
        state: { status: "open" as const, secretHash, user: signedIn, expiresAt },
        reply: {},
        remind: { expire: expiresAt },
      };
    },

    get(state, { secretHash }, { now }) {
      return { state, reply: openOf(state, secretHash, now) };
    },

    describe(state, { userId }, { now }) {
      const isOpen = state.status === "open" && now < state.expiresAt;
      if (!isOpen || state.user?.userId !== userId) {
        throw new ActorError("not_found", "Cannot find session: it has ended, or is another's");
      }
      const { user: signedIn, expiresAt } = state;
      return { state, reply: { authenticatedAt: signedIn.authenticatedAt, expiresAt } };
    },

    awaitLogout(state, { secretHash, logout }, { now }) {
      if (state.status === "open") {
        const { logout: _before, ...open } = openOf(state, secretHash, now);
        return { state: logout ? { ...open, logout } : open, reply: {} };
      }
      // The session has ended, so nobody can confirm the sign-out, and nothing is stored.
      return { state, reply: {} };
    },

    end: (state, _input, { key }) => ({ ...endOf(state, key), reply: {} }),
    signedOut: (state, _input, { key }) => endOf(state, key),

    expire(state, _input, { key, now }) {
      if (state.status === "open" && now < state.expiresAt) return { state };
      return endOf(state, key);
    },
  },
});

type State = DeepReadonly<SessionState>;

function openOf(state: State, secretHash: string, now: number) {
  const opened =
    state.status === "open" && sameHash(state.secretHash, secretHash) && now < state.expiresAt;
  if (!opened) throw new ActorError("unauthenticated", "Cannot authenticate: unknown session");
  return state;
}

function endOf(state: State, key: string) {
  if (state.status !== "open") return { state };
  const { user: signedIn } = state;
  if (!signedIn) return { forget: true as const };
  const { userId, email } = signedIn;
  const send = [envelope(user, email, "sessionEnded", { userId, sessionId: key })];
  return { forget: true as const, send };
}

/** Counts the requests of an account in consecutive windows of time. A window begins with its first request. */
import { requestLimit } from "../../../schemas/account/request-limit.ts";
import { defineActor } from "../../runtime/kinds/define-actor.ts";
import { RequestLimitState } from "./request-limit-state.ts";

/**
 * Stored at: account id; `apps-of `, account id; `person `, user id; `revocations-of `, id of a token, grant or session; `refreshes-of `, account id; `refreshes-of person `, user id; for sign-in, sign-up and authorization requests the act and its source, such as `login-from 192.0.2.77`
 *
 * State: nothing: `{ windowEndsAt, taken }` lives in memory and starts anew where its host dies
 */
export const requestLimitActor = defineActor(requestLimit, {
  state: RequestLimitState,
  initial: { windowEndsAt: 0, taken: 0 },
  // The count is not stored: a commit for every request would cost too much. If the host dies, the count starts at
  // zero again.
  durable: false,

  handlers: {
    take(state, { limit, windowMs }, { now }) {
      // A new window begins if the stored one has ended. It also begins if the stored one ends too late, because an
      // earlier window was longer or the clock was set back.
      const ended = now >= state.windowEndsAt || state.windowEndsAt > now + windowMs;
      const window = ended ? { windowEndsAt: now + windowMs, taken: 0 } : state;
      const allowed = window.taken < limit;
      const count = allowed ? window.taken + 1 : window.taken;
      const resetS = Math.ceil((window.windowEndsAt - now) / 1_000);
      return {
        state: allowed ? { ...window, taken: count } : state,
        reply: { allowed, limit, remaining: Math.max(0, limit - count), resetS },
      };
    },

    giveBack(state, _input, { now }) {
      const isOver = now >= state.windowEndsAt || state.taken === 0;
      return { state: isOver ? state : { ...state, taken: state.taken - 1 }, reply: {} };
    },
  },
});

/** Stores an authorization request until it ends. Only the browser in which it began can read it. */
import { ActorError } from "../../../schemas/errors.ts";
import { interaction } from "../../../schemas/oauth/interaction.ts";
import { defineActor } from "../../runtime/kinds/define-actor.ts";
import { InteractionState } from "./interaction-state.ts";

/**
 * Stored at: uid of an authorization request
 *
 * State: `{ status: "none" }` or `{ status: "open", browserHash, expiresAt, record }`; forgotten when it is over, or
 * after 10 minutes
 */
export const interactionActor = defineActor(interaction, {
  state: InteractionState,
  initial: { status: "none" },

  handlers: {
    put(state, { browserHash, record, expiresAt }, { now }) {
      if (state.status === "open" && state.browserHash !== browserHash) throw unknown();
      // The request has expired and must not start again.
      if (expiresAt <= now) throw unknown();
      const remind = state.status === "open" ? {} : { remind: { expire: expiresAt } };
      const endsAt = state.status === "open" ? state.expiresAt : expiresAt;
      const next = { status: "open" as const, browserHash, record, expiresAt: endsAt };
      return { state: next, reply: {}, ...remind };
    },

    get(state, { browserHash }, { now }) {
      const open =
        state.status === "open" && state.browserHash === browserHash && now < state.expiresAt;
      if (!open) throw unknown();
      return { state, reply: { record: state.record } };
    },

    end: (state) => (state.status === "open" ? { forget: true, reply: {} } : { state, reply: {} }),
    expire: (state) => (state.status === "open" ? { forget: true } : { state }),
  },
});

const unknown = () => new ActorError("not_found", "Cannot find request: it is unknown or over");

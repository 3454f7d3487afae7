/** Wakes an agent when the next timer in its database is due, on whichever host the agent is then. */
import { z } from "zod";
import { agent, agentAlarm } from "../../../schemas/apps/agent.ts";
import { envelope } from "../../../schemas/contract.ts";
import { EpochMs } from "../../../schemas/values.ts";
import { defineActor } from "../../runtime/kinds/define-actor.ts";

/**
 * An alarm that its agent did not handle is repeated after this time, then after twice the time, and so on, up to the
 * limit below: an app may stay broken for weeks.
 */
export const AGENT_ALARM_RETRY_MS = 60_000;
export const AGENT_ALARM_RETRY_MS_MAX = 60 * 60_000;

const AgentAlarmState = z.object({
  at: EpochMs.optional(),
  /** How often the alarm for `at` has fired without being handled; absent before it first fires. */
  rings: z.int().min(1).optional(),
});

/**
 * Stored at: `agentKey`
 *
 * State: `{ at?, rings? }`: when the next timer of the agent's database is due, and how often its alarm fired without
 * being handled; forgotten when no timer is set
 */
export const agentAlarmActor = defineActor(agentAlarm, {
  state: AgentAlarmState,
  initial: {},

  handlers: {
    set(state, { at }) {
      if (at === state.at && state.rings === undefined) return { state, reply: {} };
      // The caller knows all due times, so a new alarm replaces the old one.
      if (at === undefined) return { forget: true, reply: {} };
      return { state: { at }, remind: { ring: at }, reply: {} };
    },

    heard(state, { at }) {
      // If the alarm was set again meanwhile, the agent handled an earlier alarm, and the present alarm stays.
      if (state.at !== at || state.rings === undefined) return { state, reply: {} };
      return { forget: true, reply: {} };
    },

    ring(state, _input, { key, now }) {
      const { at, rings = 0 } = state;
      if (at === undefined) return { state };
      // An agent that cannot open now may open later. Until it has handled the alarm, nothing else knows that its
      // timer is due.
      const pause = Math.min(AGENT_ALARM_RETRY_MS * 2 ** rings, AGENT_ALARM_RETRY_MS_MAX);
      return {
        state: { at, rings: rings + 1 },
        remind: { ring: now + pause },
        send: [envelope(agent, key, "wake", { at })],
      };
    },
  },
});

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
export const AGENT_ALARM_RETRY_MS_MAX = 10 * 60_000;

const AgentAlarmState = z.object({
  at: EpochMs.optional(),
  /** How often the alarm for `at` has fired without being handled; absent before it first fires. */
  rings: z.int().min(1).optional(),
  /** The highest number of a record that has set this alarm; absent if a host of an earlier version set it. */
  record: z.int().min(1).optional(),
  /**
   * The earliest time that a lower record has asked for while the alarm for `at` fired; absent if there is none. When
   * that alarm is handled, the alarm is set to this time.
   */
  missed: EpochMs.optional(),
});

/**
 * Stored at: `agentKey`
 *
 * State: `{ at?, rings?, record?, missed? }`: when the next timer of the agent's database is due, how often its alarm
 * fired without being handled, the number of the agent's record that set it, and the time that a record with a lower
 * number asked for meanwhile; forgotten when no timer is set
 */
export const agentAlarmActor = defineActor(agentAlarm, {
  state: AgentAlarmState,
  initial: {},

  handlers: {
    set(state, { at, record = state.record }) {
      if (isLate(state, record)) {
        // The present owner may rely on its alarm, so a former one can neither cancel it nor put it off. An earlier
        // alarm only wakes the agent, which then sets the alarm again. So an app that was deleted and created anew,
        // whose records have low numbers, gets its alarms even if an alarm of the earlier app is left. While that alarm
        // fires, the agent may already ask for its next alarm.
        if (at === undefined) return { state, reply: {} };
        if (state.rings !== undefined) {
          const missed = Math.min(at, state.missed ?? at);
          return { state: missed === state.missed ? state : { ...state, missed }, reply: {} };
        }
        if (at >= (state.at ?? 0)) return { state, reply: {} };
        return { state: { ...state, at }, remind: { ring: at }, reply: {} };
      }
      const isKnown = at === state.at && state.rings === undefined;
      if (isKnown && record === state.record) return { state, reply: {} };
      // The caller knows all due times, so a new alarm replaces the old one. Where no alarm is set, a late call does no
      // harm, so no number needs to be kept.
      if (at === undefined) return { forget: true, reply: {} };
      const next = { at, ...(record !== undefined && { record }) };
      return { state: next, ...(!isKnown && { remind: { ring: at } }), reply: {} };
    },

    heard(state, { at }) {
      // If the alarm was set again meanwhile, the agent handled an earlier alarm, and the present alarm stays.
      if (state.at !== at || state.rings === undefined) return { state, reply: {} };
      const { missed } = state;
      if (missed === undefined) return { forget: true, reply: {} };
      return { state: { at: missed }, remind: { ring: missed }, reply: {} };
    },

    ring(state, _input, { key, now }) {
      const { at, rings = 0 } = state;
      if (at === undefined) return { state };
      // An agent that cannot open now may open later. Until it has handled the alarm, nothing else knows that its
      // timer is due.
      const pause = Math.min(AGENT_ALARM_RETRY_MS * 2 ** rings, AGENT_ALARM_RETRY_MS_MAX);
      return {
        state: { ...state, rings: rings + 1 },
        remind: { ring: now + pause },
        send: [envelope(agent, key, "wake", { at })],
      };
    },
  },
});

/** Returns whether a later record than this one has set the alarm. */
const isLate = (state: { record?: number | undefined }, record: number | undefined) =>
  state.record !== undefined && record !== undefined && record < state.record;

/** Counts the browser time of an account, and refuses tasks when the time of the day is used up. */
import { z } from "zod";
import { ActorError } from "../../../schemas/errors.ts";
import { browserTime, UsageDay } from "../../../schemas/rendering/browser-time.ts";
import { defineActor } from "../../runtime/kinds/define-actor.ts";
import { addUsage, dateOf, nextDayAt, usageOf } from "./usage.ts";

/**
 * Limits the task ids that an account remembers to recognise a repeated report. A report is redelivered within
 * seconds.
 */
export const USAGE_TASKS_REMEMBERED_MAX = 128;

export const BrowserTimeState = z.object({
  /** Usage by day, the oldest first. Days without usage have no entry. */
  usage: z.array(UsageDay),
  /** Ids of the latest tasks whose browser time was counted. Repeated reports of these tasks are ignored. */
  countedTasks: z.array(z.string()),
});
export type BrowserTimeState = z.infer<typeof BrowserTimeState>;

/**
 * Stored at: account id
 *
 * State: `{ usage: [{ date, ms, tasks }], countedTasks: [task id] }`: browser time of the last 32 days; the last 128
 * tasks that were counted
 */
export const browserTimeActor = defineActor(browserTime, {
  state: BrowserTimeState,
  initial: { usage: [], countedTasks: [] },

  handlers: {
    admit(state, { limitMs, untoldMs = 0 }, { now }) {
      const ms = usageOf(state.usage, dateOf(now)).ms + untoldMs;
      if (limitMs > 0 && ms >= limitMs) {
        throw new ActorError(
          "browser_time_exceeded",
          `Cannot render: ${ms / 1_000} of ${limitMs / 1_000} seconds of browser time are used today (UTC)`,
          { retryAfterS: Math.ceil((nextDayAt(now) - now) / 1_000) },
        );
      }
      return { state, reply: { usedMs: ms } };
    },

    used(state, { ms, taskId, isPart = false }, { now }) {
      // Ignore a repeated report. If a worker dies after its report, another worker runs the task again and reports
      // again.
      if (state.countedTasks.includes(taskId)) return { state };
      const countedTasks = [...state.countedTasks, taskId].slice(-USAGE_TASKS_REMEMBERED_MAX);
      const usage = addUsage(state.usage, dateOf(now), { ms, tasks: isPart ? 0 : 1 });
      return { state: { usage, countedTasks } };
    },

    getUsage(state, _input, { now }) {
      const today = usageOf(state.usage, dateOf(now));
      return { state, reply: { today, resetsAt: nextDayAt(now), days: state.usage } };
    },
  },
});

/** Counts the browser time of an account, and refuses tasks when the time of the day is used up. */
import { z } from "zod";
import { ActorError } from "../../../schemas/errors.ts";
import { browserTime, UsageDay } from "../../../schemas/rendering/browser-time.ts";
import { defineActor } from "../../runtime/kinds/define-actor.ts";
import { COUNTED_MS, CountedRow, isCounted, withCounted, withoutOld } from "./counted-tasks.ts";
import { addUsage, dateOf, nextDayAt, usageOf } from "./usage.ts";

export const BrowserTimeState = z.object({
  /** Usage by day, the oldest first. Days without usage have no entry. */
  usage: z.array(UsageDay),
  /** Ids that earlier versions stored here. Each report removes one. */
  countedTasks: z.array(z.string()),
});
export type BrowserTimeState = z.infer<typeof BrowserTimeState>;

/**
 * Stored at: account id
 *
 * State: `{ usage: [{ date, ms, tasks }], countedTasks: [task id] }`: browser time of the last 32 days; the tasks that
 * earlier versions counted
 *
 * Row `counted/<number>`: `{ lastAt, ids }`: hashes of up to 128 tasks that were counted in the last half hour
 */
export const browserTimeActor = defineActor(browserTime, {
  state: BrowserTimeState,
  rows: CountedRow,
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

    used(state, { ms, taskId, isPart = false }, { now, rows }) {
      // Ignore a repeated report. If a worker dies after its report, another worker runs the task again and reports
      // again.
      if (state.countedTasks.includes(taskId) || isCounted(rows, taskId)) return { state };
      const usage = addUsage(state.usage, dateOf(now), { ms, tasks: isPart ? 0 : 1 });
      const next = { usage, countedTasks: state.countedTasks.slice(1) };
      const counted = withCounted(rows, taskId, now);
      const isNewRow = Object.keys(counted).some((row) => !rows.has(row));
      return {
        ...{ state: next, rows: counted },
        // Rows also leave if the account reports no more. One reminder for each row costs little.
        ...(isNewRow && { remind: { dropCounted: now + COUNTED_MS } }),
      };
    },

    dropCounted(state, _input, { now, rows }) {
      const { rows: removed, oldAt } = withoutOld(rows, now);
      return {
        ...{ state, rows: removed },
        ...(oldAt !== undefined && { remind: { dropCounted: oldAt } }),
      };
    },

    getUsage(state, _input, { now }) {
      const today = usageOf(state.usage, dateOf(now));
      return { state, reply: { today, resetsAt: nextDayAt(now), days: state.usage } };
    },
  },
});

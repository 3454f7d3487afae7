/** Counts the used browser time of an account for each UTC day. */
import type { DeepReadonly } from "../../../schemas/contract.ts";
import type { UsageDay } from "../../../schemas/rendering/browser-time.ts";

/** Limits the days of browser-time usage that an account stores and shows: today and the 31 days before. */
export const USAGE_DAYS_MAX = 32;

const DAY_MS = 86_400_000;

type Usage = DeepReadonly<UsageDay[]>;

/** Returns the UTC day of a time in epoch milliseconds, as YYYY-MM-DD. */
export const dateOf = (at: number) => new Date(at).toISOString().slice(0, 10);

/** Returns the next UTC midnight, in epoch milliseconds. */
export const nextDayAt = (at: number) => (Math.floor(at / DAY_MS) + 1) * DAY_MS;

export function usageOf(usage: Usage, date: string): UsageDay {
  return usage.find((day) => day.date === date) ?? { date, ms: 0, tasks: 0 };
}

/** Adds usage to a day, and removes days that are too old to be shown. */
export function addUsage(
  usage: Usage,
  date: string,
  { ms, tasks }: Pick<UsageDay, "ms" | "tasks">,
): UsageDay[] {
  const before = usageOf(usage, date);
  const others = usage.filter((day) => day.date !== date);
  // No report may make a state that cannot be read again, whatever time it reports.
  const sum = Math.min(before.ms + ms, Number.MAX_SAFE_INTEGER);
  // The days are sorted, because the clocks of two hosts differ: around midnight a report for the earlier day may
  // arrive after a report for the later day.
  return [...others, { date, ms: sum, tasks: before.tasks + tasks }]
    .sort((one, other) => (one.date < other.date ? -1 : 1))
    .slice(-USAGE_DAYS_MAX);
}

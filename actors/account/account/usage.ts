/** Browser time by UTC day. */
import type { UsageDay } from "../../../schemas/account/account.ts";
import type { DeepReadonly } from "../../../schemas/contract.ts";

/** Browser time is shown for a month: 31 whole days and today. */
export const USAGE_DAYS_MAX = 32;

const DAY_MS = 86_400_000;

type Usage = DeepReadonly<UsageDay[]>;

/** The UTC day a moment belongs to, as YYYY-MM-DD. */
export const dateOf = (at: number) => new Date(at).toISOString().slice(0, 10);

/** The next UTC midnight. */
export const nextDayAt = (at: number) => (Math.floor(at / DAY_MS) + 1) * DAY_MS;

export function usageOf(usage: Usage, date: string): UsageDay {
  return usage.find((day) => day.date === date) ?? { date, ms: 0, tasks: 0 };
}

/** Adds usage, and drops days that are no longer shown. */
export function addUsage(
  usage: Usage,
  date: string,
  { ms, tasks }: Pick<UsageDay, "ms" | "tasks">,
): UsageDay[] {
  const before = usageOf(usage, date);
  const others = usage.filter((day) => day.date !== date);
  // The clocks of two hosts differ, so around midnight a day may come after the one that follows it.
  return [...others, { date, ms: before.ms + ms, tasks: before.tasks + tasks }]
    .sort((one, other) => (one.date < other.date ? -1 : 1))
    .slice(-USAGE_DAYS_MAX);
}

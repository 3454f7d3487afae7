/** For how long a host is left alone that asks for it. Pure, as all of its pace. */
import { HOST_AWAY_MS, HOST_AWAY_MS_MAX } from "../../../schemas/crawl/limits.ts";
import type { Pace } from "./pace-state.ts";

/** But no longer than this: a page has three tries, and a job of seven days a thousand such pauses. */
export const HOST_AWAY_UNSAID_MS_MAX = 600_000;

export interface Asked {
  /** What it named (Retry-After), or 0. */
  awayMs: number;
  /** When it was asked, by the request that it answered so. */
  startedAt: number;
  now: number;
}

/**
 * The host asked to be left alone (429, 503): for as long as it named, or else for twice as long as the last time. What
 * it says to requests from before its pause it has said already.
 */
export function stayAway(pace: Pace, { awayMs, startedAt, now }: Asked): Pace {
  const isNew = startedAt >= pace.awayUntil;
  const busy = (pace.busy ?? 0) + (isNew ? 1 : 0);
  const unsaidMs = isNew ? Math.min(HOST_AWAY_MS * 2 ** (busy - 1), HOST_AWAY_UNSAID_MS_MAX) : 0;
  const ms = awayMs > 0 ? Math.min(awayMs, HOST_AWAY_MS_MAX) : unsaidMs;
  const awayUntil = Math.max(pace.awayUntil, now + ms);
  return busy > 0 ? { ...pace, awayUntil, busy } : { ...pace, awayUntil };
}

/** A request that left at `startedAt` was answered otherwise: the host is itself again. */
export function comeBack(pace: Pace, startedAt: number): Pace {
  if (pace.busy === undefined || startedAt < pace.awayUntil) return pace;
  const { busy, ...others } = pace;
  return others;
}

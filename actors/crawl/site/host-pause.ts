/** Pauses of a host that asks for one. Pure functions. */
import { HOST_AWAY_MS, HOST_AWAY_MS_MAX } from "../../../schemas/crawl/limits.ts";
import type { Pace } from "./pace-state.ts";

/**
 * Longest pause without Retry-After. A page has three attempts, and a job of seven days has a thousand such pauses.
 */
export const HOST_AWAY_DEFAULT_MS_MAX = 600_000;

export interface RequestedPause {
  /** Pause that the host named (Retry-After), or 0. */
  awayMs: number;
  /** Start of the request that got this response. */
  startedAt: number;
  now: number;
}

/**
 * Pauses a host after a 429 or 503: for the named time, or else twice as long as the last time. Responses to requests
 * from before the pause do not lengthen it.
 */
export function pauseHost(pace: Pace, { awayMs, startedAt, now }: RequestedPause): Pace {
  const isNew = startedAt >= pace.awayUntil;
  const busy = (pace.busy ?? 0) + (isNew ? 1 : 0);
  const unsaidMs = isNew ? Math.min(HOST_AWAY_MS * 2 ** (busy - 1), HOST_AWAY_DEFAULT_MS_MAX) : 0;
  const ms = awayMs > 0 ? Math.min(awayMs, HOST_AWAY_MS_MAX) : unsaidMs;
  const awayUntil = Math.max(pace.awayUntil, now + ms);
  return busy > 0 ? { ...pace, awayUntil, busy } : { ...pace, awayUntil };
}

/** Ends the count of pauses: a request that left at `startedAt` got another response. */
export function endPause(pace: Pace, startedAt: number): Pace {
  if (pace.busy === undefined || startedAt < pace.awayUntil) return pace;
  const { busy, ...others } = pace;
  return others;
}

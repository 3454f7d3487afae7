/** Pauses of a host that asks for one. Pure functions. */
import { HOST_AWAY_MS, HOST_AWAY_MS_MAX } from "../../../schemas/crawl/limits.ts";
import type { Pace } from "./pace-state.ts";

/**
 * Longest pause after a response without Retry-After. Within seven days, the lifetime of a job, a thousand such
 * pauses fit.
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
 * Pauses a host after a 429 or 503, for the requested time up to HOST_AWAY_MS_MAX. If none was requested, the first
 * pause lasts HOST_AWAY_MS and each further one twice as long as the one before, up to HOST_AWAY_DEFAULT_MS_MAX. If
 * the request left before the last pause ended, a response without a time changes nothing.
 */
export function pauseHost(pace: Pace, { awayMs, startedAt, now }: RequestedPause): Pace {
  const isNew = startedAt >= pace.awayUntil;
  const busy = (pace.busy ?? 0) + (isNew ? 1 : 0);
  const unsaidMs = isNew ? Math.min(HOST_AWAY_MS * 2 ** (busy - 1), HOST_AWAY_DEFAULT_MS_MAX) : 0;
  const ms = awayMs > 0 ? Math.min(awayMs, HOST_AWAY_MS_MAX) : unsaidMs;
  const awayUntil = Math.max(pace.awayUntil, now + ms);
  return busy > 0 ? { ...pace, awayUntil, busy } : { ...pace, awayUntil };
}

/**
 * Resets the count of pauses if a request that left after the pause got a response without a pause. `startedAt` is
 * the time at which that request left.
 */
export function endPause(pace: Pace, startedAt: number): Pace {
  if (pace.busy === undefined || startedAt < pace.awayUntil) return pace;
  const { busy, ...others } = pace;
  return others;
}

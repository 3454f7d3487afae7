/** The turns of a pace: those that run, and what becomes of one. */
import {
  HOST_REQUESTS_IN_FLIGHT_MAX,
  TURN_FOLLOW_LATE_MS,
  TURN_FOLLOW_UNHEARD_MS,
  TURN_LATE_MS,
  TURN_UNHEARD_MS,
} from "../../schemas/crawl-limits.ts";
import type { Going, Pace, Turn } from "./pace-state.ts";

/** Requests at once of one turn: half of all at most, so that the next turn runs while the last of this one come in. */
export function shareOf({ accounts, turns }: Pace): number {
  const jobs = new Set(Object.values(turns).map(({ job }) => job));
  for (const account of accounts) for (const { job } of account.jobs) jobs.add(job);
  return Math.ceil(HOST_REQUESTS_IN_FLIGHT_MAX / Math.max(2, jobs.size));
}

export function inFlight({ turns, going }: Pace): number {
  const running = Object.values(turns).filter(({ startedAt }) => startedAt !== undefined);
  return running.reduce((sum, { atOnce }) => sum + atOnce, going === undefined ? 0 : 1);
}

/** Turns that began while the host asked for no delay are still at it. */
export const runsAtOnce = (pace: Pace) =>
  Object.values(pace.turns).some(({ startedAt, atOnce }) => startedAt !== undefined && atOnce > 0);

export function withStarted(pace: Pace, turn: string, startedAt: number): Pace {
  const granted = pace.turns[turn];
  return granted === undefined ? pace : withTurn(pace, turn, { ...granted, startedAt });
}

export const withTurn = (pace: Pace, turn: string, value: Turn): Pace => ({
  ...pace,
  turns: { ...pace.turns, [turn]: value },
});

export function finishedQuietly(pace: Pace, turn: string): Pace {
  const { [turn]: _, ...turns } = pace.turns;
  return { ...pace, turns };
}

/** Who was not told goes by itself, or not at all. */
export const isTold = ({ place, told }: Going) => place === undefined || told === true;
export const latestMs = (going: Going) => (isTold(going) ? TURN_LATE_MS : TURN_FOLLOW_LATE_MS);
export const unheardAt = (going: Going) =>
  going.startAt + (isTold(going) ? TURN_UNHEARD_MS : TURN_FOLLOW_UNHEARD_MS);

/** Its worker is told that it is its turn. */
export function tell(pace: Pace, startAt: number): Pace {
  const { going } = pace;
  if (going === undefined) return pace;
  return {
    ...pace,
    going: { ...going, startAt, ...(going.place !== undefined && { told: true }) },
  };
}

/** What a host has room for: how many turns at a time, of how many requests, and when the next may leave. Pure, as all of its pace. */
import {
  HOST_REQUESTS_IN_FLIGHT_MAX,
  TURN_LEAD_MS,
  TURN_OVERDUE_MS,
} from "../../../schemas/crawl/limits.ts";
import { type Moment, type Pace, turnOf, wantingJobs } from "./pace-state.ts";

/** Requests of one turn of a job that is alone at a host with a delay: a fifth of the messages, and few beside those that may be under way. */
export const TURN_SPACED_REQUESTS_MAX = 5;
/** No more than those of so long, for which a worker holds the turn. */
export const TURN_SPAN_MS = 2_500;
/** Turns that wait to begin at one host. */
export const TURNS_AHEAD_MAX = 4;
/**
 * Requests of one host that have started and are not finished: at the usual delay pages may take 8 s before this slows them.
 * A host that takes longer is overloaded, or drips; a worker has 64 places for all.
 */
export const TURNS_STARTED_MAX = 16;

/** When the next request may leave, if the one that goes now leaves at its time. */
export function nextStartAt(pace: Pace, { delayMs, now }: Moment): number {
  const latest = Math.max(pace.lastStartAt, pace.going?.startAt ?? 0);
  return Math.max(now, pace.awayUntil, delayMs === 0 ? 0 : latest + delayMs);
}

/** Before this a turn that is granted would only wait in its worker. */
export const grantableAt = (pace: Pace, moment: Moment) => nextStartAt(pace, moment) - TURN_LEAD_MS;

/** With a delay: one turn behind the last request of one that goes, and one more for each that should have begun long ago. */
export function hasRoom(pace: Pace, moment: Moment): boolean {
  // A task that would wait long waits here, and not in a worker.
  if (grantableAt(pace, moment) > moment.now) return false;
  if (pace.going !== undefined && pace.turns[pace.going.turn]?.more !== undefined) return false;
  const turns = Object.entries(pace.turns).filter(([, { account }]) => account !== "");
  const ahead = turns.filter(
    ([turn, { startedAt }]) => startedAt === undefined && turn !== pace.going?.turn,
  );
  if (turns.length - ahead.length >= TURNS_STARTED_MAX) return false;
  const overdue = ahead.filter(([, { dueAt }]) => moment.now >= dueAt + TURN_OVERDUE_MS);
  if (moment.delayMs > 0) return ahead.length < Math.min(1 + overdue.length, TURNS_AHEAD_MAX);
  // Without: as many wait to begin as can run, so that turns follow each other without a gap.
  const share = shareOf(pace);
  const lost = overdue.filter(([, { asked }]) => !asked).slice(0, TURNS_AHEAD_MAX);
  const coming = ahead.filter((one) => !lost.includes(one));
  const requests = coming.reduce((sum, [, turn]) => sum + Math.min(share, turn.requests), 0);
  return requests < HOST_REQUESTS_IN_FLIGHT_MAX;
}

/**
 * Requests of a turn where there is a delay: several while nobody else wants any and at most one turn is not over, and of
 * a slow host no more than may be under way.
 */
export function spacedMax(pace: Pace, job: string, delayMs: number): number {
  const { turns } = pace;
  const jobs = [...wantingJobs(pace), ...Object.values(turns).map((turn) => turn.job)];
  const underWay = new Set(Object.keys(turns).map(turnOf));
  if (jobs.some((one) => one !== job) || underWay.size > 1) return 1;
  const free = TURNS_STARTED_MAX - Object.keys(turns).length;
  return Math.max(1, Math.min(free, spanRequests(delayMs)));
}

/** A worker holds a turn for so long. */
export const spanRequests = (delayMs: number) =>
  Math.min(TURN_SPACED_REQUESTS_MAX, Math.max(1, Math.floor(TURN_SPAN_MS / delayMs)));

/** Requests at once of one turn: half of all at most, so that the next turn runs while the last of this one come in. */
export function shareOf(pace: Pace): number {
  const granted = Object.values(pace.turns).map(({ job }) => job);
  const jobs = new Set([...granted, ...wantingJobs(pace)]);
  return Math.ceil(HOST_REQUESTS_IN_FLIGHT_MAX / Math.max(2, jobs.size));
}

export function inFlight({ turns, going }: Pace): number {
  const running = Object.values(turns).filter(({ startedAt }) => startedAt !== undefined);
  return running.reduce((sum, { atOnce }) => sum + atOnce, going === undefined ? 0 : 1);
}

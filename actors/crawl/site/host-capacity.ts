/**
 * The capacity of a host: how many turns at a time, with how many requests, and when the next request may leave. Pure
 * functions.
 */
import {
  HOST_REQUESTS_IN_FLIGHT_MAX,
  TURN_LEAD_MS,
  TURN_OVERDUE_MS,
} from "../../../schemas/crawl/limits.ts";
import { type Moment, type Pace, type Turn, turnOf, wantingJobs } from "./pace-state.ts";

/**
 * Maximum requests of one turn if its job is the only one at a host with a delay. With 5, four of five grants are
 * saved and few requests are in flight.
 */
export const TURN_SPACED_REQUESTS_MAX = 5;
/**
 * Longest time between the first and the last request of a turn at a host with a delay. The worker holds the turn
 * during this time.
 */
export const TURN_SPAN_MS = 2_500;
/**
 * Maximum number of granted turns that wait to begin at a host with a delay, overdue ones included. At another host,
 * at most this many overdue turns are ignored.
 */
export const TURNS_AHEAD_MAX = 4;
/**
 * Maximum number of turns of one host that have started and not finished; at a host with a delay each request counts
 * as one. With the default delay, pages that take up to 8 s do not slow the crawl of the host down. A host that takes
 * longer is overloaded or sends very slowly, and an account has only 64 places of a worker for all hosts.
 */
export const TURNS_STARTED_MAX = 16;

/** Returns when the next request may leave, assuming that the request of the going turn leaves at its start time. */
export function nextStartAt(pace: Pace, { delayMs, now }: Moment): number {
  const latest = Math.max(pace.lastStartAt, pace.going?.startAt ?? 0);
  return Math.max(now, pace.awayUntil, delayMs === 0 ? 0 : latest + delayMs);
}

/** Returns when the next turn may be granted. If it were granted earlier, its task would only wait at a worker. */
export const grantableAt = (pace: Pace, moment: Moment) => nextStartAt(pace, moment) - TURN_LEAD_MS;

/**
 * Whether another turn may be granted to a job of this account. At a host with a delay, one granted turn may wait behind
 * the going turn, and one more for each overdue turn, up to TURNS_AHEAD_MAX. Overdue turns of other accounts for which
 * no worker has asked do not count: they may wait long in the queues of their accounts.
 */
export function hasCapacity(pace: Pace, moment: Moment, account: string): boolean {
  // If the next request may leave only much later, the turn is not granted yet, so that no worker has to hold it.
  if (grantableAt(pace, moment) > moment.now) return false;
  if (pace.going !== undefined && pace.turns[pace.going.turn]?.more !== undefined) return false;
  const turns = Object.entries(pace.turns).filter(([, turn]) => turn.account !== "");
  const waiting = turns.filter(
    ([turn, { startedAt }]) => startedAt === undefined && turn !== pace.going?.turn,
  );
  if (turns.length - waiting.length >= TURNS_STARTED_MAX) return false;
  const isOverdue = ({ dueAt }: Turn) => moment.now >= dueAt + TURN_OVERDUE_MS;
  const ahead = waiting.filter(
    ([, turn]) => turn.account === account || turn.asked || !isOverdue(turn),
  );
  const overdue = ahead.filter(([, turn]) => isOverdue(turn));
  if (moment.delayMs > 0) return ahead.length < Math.min(1 + overdue.length, TURNS_AHEAD_MAX);
  // At a host without a delay, turns are granted until the waiting ones have enough requests for the whole host.
  const share = shareOf(pace);
  const lost = overdue.filter(([, { asked }]) => !asked).slice(0, TURNS_AHEAD_MAX);
  const coming = ahead.filter((one) => !lost.includes(one));
  const requests = coming.reduce((sum, [, turn]) => sum + Math.min(share, turn.requests), 0);
  return requests < HOST_REQUESTS_IN_FLIGHT_MAX;
}

/**
 * Returns the maximum requests of the job's next turn at a host with a delay. It is above 1 only if no other job
 * wants requests or has a turn, and at most one turn is open. It never exceeds the number of requests that may still
 * be in flight.
 */
export function spacedMax(pace: Pace, job: string, delayMs: number): number {
  const { turns } = pace;
  const jobs = [...wantingJobs(pace), ...Object.values(turns).map((turn) => turn.job)];
  const underWay = new Set(Object.keys(turns).map(turnOf));
  if (jobs.some((one) => one !== job) || underWay.size > 1) return 1;
  const free = TURNS_STARTED_MAX - Object.keys(turns).length;
  return Math.max(1, Math.min(free, spanRequests(delayMs)));
}

/** Number of requests that fit TURN_SPAN_MS. */
export const spanRequests = (delayMs: number) =>
  Math.min(TURN_SPACED_REQUESTS_MAX, Math.max(1, Math.floor(TURN_SPAN_MS / delayMs)));

/**
 * Returns the maximum concurrent requests of one turn at a host without a delay: the host's limit divided by the
 * number of jobs. It is at most half of the limit, so that the next turn can start while this one ends.
 */
export function shareOf(pace: Pace): number {
  const granted = Object.values(pace.turns).map(({ job }) => job);
  const jobs = new Set([...granted, ...wantingJobs(pace)]);
  return Math.ceil(HOST_REQUESTS_IN_FLIGHT_MAX / Math.max(2, jobs.size));
}

/** Returns the number of visits whose request may be in flight, at a host without a delay. */
export const visitsInFlight = ({ turns }: Pace) =>
  Object.values(turns).filter(({ isVisit, startedAt }) => isVisit && startedAt !== undefined)
    .length;

export function inFlight({ turns, going }: Pace): number {
  const running = Object.values(turns).filter(({ startedAt }) => startedAt !== undefined);
  return running.reduce((sum, { atOnce }) => sum + atOnce, going === undefined ? 0 : 1);
}

/**
 * Whose turn it is to ask a host, and when: accounts by turns, within an account its jobs by turns, and never two
 * requests closer than the host's delay. Pure: times come in, the next state comes out.
 *
 * A turn is granted ahead, so that its task is with a worker when it is due, and begun by that worker at the last moment:
 * only a turn that begins takes a place in time. So whatever a task waited for, and whoever died with one, no request is
 * early, and no place is lost for long.
 */
import { z } from "zod";
import type { DeepReadonly } from "../../schemas/contract.ts";
import {
  HOST_REQUESTS_IN_FLIGHT_MAX,
  TURN_LEAD_MS,
  TURN_MS_MAX,
  TURN_OVERDUE_MS,
  TURN_REQUESTS_MAX,
  TURNS_AHEAD_MAX,
} from "../../schemas/crawl-limits.ts";
import { EpochMs } from "../../schemas/values.ts";

const Turn = z.object({
  account: z.string(),
  job: z.string(),
  /** Requests it may make, and how many of them at once. */
  requests: z.int(),
  atOnce: z.int(),
  /** When it could begin, as it was granted. */
  dueAt: EpochMs,
  startedAt: EpochMs.optional(),
});

export const Pace = z.object({
  /** When the latest request was, or will be, started. */
  lastStartAt: EpochMs,
  /** The host asked us to stay away until then. */
  awayUntil: EpochMs,
  /** Who waits, in the order in which they are served. */
  accounts: z.array(
    z.object({
      account: z.string(),
      jobs: z.array(z.object({ job: z.string(), wants: z.int().min(1) })),
    }),
  ),
  /** Granted and not finished, by their ids. */
  turns: z.record(z.string(), Turn),
});
export type Pace = z.infer<typeof Pace>;
type ReadPace = DeepReadonly<Pace>;

export const IDLE_PACE: Pace = { lastStartAt: 0, awayUntil: 0, accounts: [], turns: {} };

export interface Granted {
  turn: string;
  account: string;
  job: string;
  requests: number;
  atOnce: number;
  /** Milliseconds until it can begin: a hint for who waits. */
  dueInMs: number;
}

/** The job has so many requests to make; it replaces what it wanted before. 0 takes it off the list. */
export function want(pace: ReadPace, account: string, job: string, wants: number): ReadPace {
  const known = pace.accounts.find((one) => one.account === account);
  const jobs = known?.jobs ?? [];
  const next =
    wants === 0
      ? jobs.filter((one) => one.job !== job)
      : jobs.some((one) => one.job === job)
        ? jobs.map((one) => (one.job === job ? { job, wants } : one))
        : [...jobs, { job, wants }];
  if (known === undefined) {
    return next.length === 0
      ? pace
      : { ...pace, accounts: [...pace.accounts, { account, jobs: next }] };
  }
  const accounts = pace.accounts.map((one) => (one === known ? { account, jobs: next } : one));
  return { ...pace, accounts: accounts.filter((one) => one.jobs.length > 0) };
}

/** Grants what may be granted now. Call it after every change, and when the oldest turn that did not begin is overdue. */
export function grant(
  pace: ReadPace,
  { delayMs, now, newId }: { delayMs: number; now: number; newId: () => string },
): { pace: ReadPace; granted: Granted[] } {
  let next = withoutLost(pace, now);
  const granted: Granted[] = [];
  for (let room = roomFor(next, delayMs, now); room > 0 && next.accounts.length > 0; ) {
    const [first, ...others] = next.accounts;
    const [job, ...jobs] = first?.jobs ?? [];
    if (!first || !job) break;
    const waiting = next.accounts.reduce((sum, one) => sum + one.jobs.length, 0);
    const atOnce =
      delayMs > 0 ? 1 : Math.min(room, job.wants, Math.ceil(HOST_REQUESTS_IN_FLIGHT_MAX / waiting));
    const requests = delayMs > 0 ? 1 : Math.min(job.wants, TURN_REQUESTS_MAX);
    const turn = newId();
    const dueMs = dueInMs(next, delayMs, now);
    const { account } = first;
    const left = job.wants - requests;
    // Who was served goes to the end: the job among its account's, the account among all.
    const served = { account, jobs: left > 0 ? [...jobs, { job: job.job, wants: left }] : jobs };
    next = {
      ...next,
      accounts: served.jobs.length > 0 ? [...others, served] : others,
      turns: {
        ...next.turns,
        [turn]: { account, job: job.job, requests, atOnce, dueAt: now + dueMs },
      },
    };
    granted.push({
      turn,
      account,
      job: job.job,
      requests,
      atOnce,
      dueInMs: dueMs,
    });
    room = roomFor(next, delayMs, now);
  }
  return { pace: next, granted };
}

/**
 * The turn's worker is ready: how long it must still wait, then it may ask. Undefined for a turn that is not known any
 * more; its job has been given, or will be given, another.
 */
export function begin(
  pace: ReadPace,
  turn: string,
  { delayMs, now }: { delayMs: number; now: number },
): { pace: ReadPace; waitMs: number } | undefined {
  const granted = pace.turns[turn];
  if (!granted) return undefined;
  const startAt = now + dueInMs(pace, delayMs, now);
  return {
    pace: {
      ...pace,
      lastStartAt: startAt,
      turns: { ...pace.turns, [turn]: { ...granted, startedAt: startAt } },
    },
    waitMs: startAt - now,
  };
}

export function finish(pace: ReadPace, turn: string): ReadPace {
  const { [turn]: finished, ...turns } = pace.turns;
  return finished ? { ...pace, turns } : pace;
}

/** The host asked to be left alone (Retry-After, 429, 503). */
export function stayAway(pace: ReadPace, until: number): ReadPace {
  return until > pace.awayUntil ? { ...pace, awayUntil: until } : pace;
}

/** When `grant` should be called again though nothing happens: a turn is overdue, or lost. */
export function nextLookAt(pace: ReadPace, delayMs: number): number | undefined {
  const times = Object.values(pace.turns).map((turn) =>
    turn.startedAt === undefined ? turn.dueAt + TURN_OVERDUE_MS : turn.startedAt + TURN_MS_MAX,
  );
  if (pace.accounts.length > 0) times.push(nextStartAt(pace, delayMs) - TURN_LEAD_MS);
  return times.length === 0 ? undefined : Math.min(...times);
}

const nextStartAt = (pace: ReadPace, delayMs: number) =>
  Math.max(pace.lastStartAt + delayMs, pace.awayUntil);

const dueInMs = (pace: ReadPace, delayMs: number, now: number) =>
  Math.max(0, nextStartAt(pace, delayMs) - now);

/** With a delay: one turn ahead, and one more for each that should have begun long ago. Without: requests in flight. */
function roomFor(pace: ReadPace, delayMs: number, now: number): number {
  // A task that would wait long waits here, and not in a worker.
  if (dueInMs(pace, delayMs, now) > TURN_LEAD_MS) return 0;
  const turns = Object.values(pace.turns);
  if (delayMs === 0) {
    const inFlight = turns.reduce((sum, { atOnce }) => sum + atOnce, 0);
    return HOST_REQUESTS_IN_FLIGHT_MAX - inFlight;
  }
  const ahead = turns.filter(({ startedAt }) => startedAt === undefined);
  const overdue = ahead.filter(({ dueAt }) => now >= dueAt + TURN_OVERDUE_MS);
  return Math.min(1 + overdue.length, TURNS_AHEAD_MAX) - ahead.length;
}

/** A worker that died took its turn with it; another try of the task is told that the turn is gone. */
function withoutLost(pace: ReadPace, now: number): ReadPace {
  const lost = Object.entries(pace.turns).filter(
    ([, { dueAt, startedAt }]) => now >= (startedAt ?? dueAt) + TURN_MS_MAX,
  );
  return lost.reduce((left, [turn]) => finish(left, turn), pace);
}

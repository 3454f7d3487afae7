/**
 * Corrects the stored times of a site after the time of day was set. Otherwise a host would pause for as long as the
 * clock was set back, or two requests would be closer than its delay after the clock was set forward. Pure functions.
 */
import type { DeepReadonly } from "../../../schemas/contract.ts";
import {
  HOST_AWAY_MS_MAX,
  ROBOTS_AWAY_MS_MAX,
  TURN_LATE_MS,
  TURN_LEAD_MS,
  TURN_MS_MAX,
} from "../../../schemas/crawl/limits.ts";
import { type Steady, setMsBetween } from "../../runtime/lib/steady-clock.ts";
import { nextStartAt } from "./host-capacity.ts";
import { TURN_GO_MS_MAX } from "./next-turn.ts";
import type { Moment, Pace, Turn } from "./pace-state.ts";
import { ROBOTS_KEPT_MS, type RobotsFile, type SiteState } from "./site-state.ts";

type State = DeepReadonly<SiteState>;

/**
 * How far the latest departure may be in the future: a worker learns its start time at most TURN_GO_MS_MAX ahead, and
 * may be late by TURN_LATE_MS. The rest is the time that a report adds for a request's way to the host.
 */
const DEPARTURE_AHEAD_MS_MAX = TURN_GO_MS_MAX + TURN_LATE_MS + 10;

/**
 * Returns the state in the present time of day. If the host process of the site has noticed that the clock was set, all
 * times move by the same difference, so pauses keep their length. Otherwise, times too far in the future are limited:
 * another process may have written them before its clock was set back.
 */
export function atPresent(
  state: State,
  { steady, ...moment }: Moment & { steady: Steady | undefined },
): State {
  const setMs = setMsBetween(state.clock, steady);
  return limited(setMs === 0 ? state : movedBy(state, setMs), moment);
}

function movedBy(state: State, ms: number): State {
  const move = (at: number) => (at === 0 ? 0 : Math.max(0, at + ms));
  return withTimes(state, {
    pace: (pace) => ({
      ...pace,
      lastStartAt: move(pace.lastStartAt),
      awayUntil: move(pace.awayUntil),
      ...(pace.going && {
        going: {
          ...pace.going,
          startAt: move(pace.going.startAt),
          ...(pace.going.toldAt !== undefined && { toldAt: move(pace.going.toldAt) }),
        },
      }),
    }),
    turn: ({ dueAt, startedAt }) => ({
      dueAt: move(dueAt),
      ...(startedAt !== undefined && { startedAt: move(startedAt) }),
    }),
    file: ({ expiresAt, fetch, notBefore }) => ({
      // A suspended machine looks like a clock that was set forward. A file expires then, too.
      expiresAt: Math.min(expiresAt, move(expiresAt)),
      ...(fetch && { fetch: { ...fetch, lostAt: move(fetch.lostAt) } }),
      ...(notBefore !== undefined && { notBefore: move(notBefore) }),
    }),
  });
}

/** Limits all times to the latest that the site itself could have written now. */
function limited(state: State, moment: Moment): State {
  const { now } = moment;
  const pace = limitedPace(state.pace, moment);
  const startAt = nextStartAt(pace, moment);
  const dueAtMax = Math.max(now + TURN_LEAD_MS, startAt);
  const startedAtMax = now + DEPARTURE_AHEAD_MS_MAX;
  const isLate = ({ dueAt, startedAt = 0 }: Turn) => dueAt > dueAtMax || startedAt > startedAtMax;
  const lostAtMax = now + TURN_MS_MAX;
  const notBeforeMax = now + ROBOTS_AWAY_MS_MAX;
  const expiresAtMax = now + ROBOTS_KEPT_MS;
  const isLateFile = ({ expiresAt, fetch, notBefore = 0 }: DeepReadonly<RobotsFile>) =>
    expiresAt > expiresAtMax || notBefore > notBeforeMax || (fetch?.lostAt ?? 0) > lostAtMax;
  const files = [state.robots.http, state.robots.https].flatMap((file) => file ?? []);
  const isRight =
    pace === state.pace && !Object.values(pace.turns).some(isLate) && !files.some(isLateFile);
  if (isRight) return state;
  return withTimes(state, {
    pace: () => pace,
    turn: ({ dueAt, startedAt }) => ({
      dueAt: Math.min(dueAt, dueAtMax),
      ...(startedAt !== undefined && { startedAt: Math.min(startedAt, now) }),
    }),
    file: ({ expiresAt, fetch, notBefore }) => ({
      expiresAt: Math.min(expiresAt, expiresAtMax),
      ...(fetch && { fetch: { ...fetch, lostAt: Math.min(fetch.lostAt, lostAtMax) } }),
      ...(notBefore !== undefined && { notBefore: Math.min(notBefore, notBeforeMax) }),
    }),
  });
}

function limitedPace(pace: Pace, { now, delayMs }: Moment): Pace {
  const lastStartAt = Math.min(pace.lastStartAt, now + DEPARTURE_AHEAD_MS_MAX);
  const awayUntil = Math.min(pace.awayUntil, now + HOST_AWAY_MS_MAX);
  const { going } = pace;
  // A going turn starts soon, or one delay after a request that left meanwhile.
  const startAtMax = Math.max(now + TURN_GO_MS_MAX, lastStartAt + delayMs);
  const isGoingLate = going !== undefined && going.startAt > startAtMax;
  if (lastStartAt === pace.lastStartAt && awayUntil === pace.awayUntil && !isGoingLate) return pace;
  // The going turn's request may have left already, because the clock was set back.
  const limitedGoing = isGoingLate && {
    going: { ...going, startAt: startAtMax, toldAt: Math.min(going.toldAt ?? now, now) },
  };
  return { ...pace, lastStartAt, awayUntil, ...limitedGoing };
}

/** Returns the state with other times of its pace, of each of its turns, and of each of its robots.txt files. */
function withTimes(
  state: State,
  times: {
    pace(pace: Pace): Pace;
    turn(turn: Turn): Pick<Turn, "dueAt" | "startedAt">;
    file(file: DeepReadonly<RobotsFile>): Partial<DeepReadonly<RobotsFile>>;
  },
): State {
  const pace = times.pace(state.pace);
  const turns = Object.entries(pace.turns).map(([entry, turn]): [string, Turn] => [
    entry,
    { ...turn, ...times.turn(turn) },
  ]);
  const { http, https } = state.robots;
  return {
    ...state,
    pace: { ...pace, turns: Object.fromEntries(turns) },
    robots: {
      ...state.robots,
      ...(http && { http: { ...http, ...times.file(http) } }),
      ...(https && { https: { ...https, ...times.file(https) } }),
    },
  };
}

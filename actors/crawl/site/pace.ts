/**
 * Decides which turn may send the next request to a host, and when. Turns are granted to accounts one after another,
 * and to the jobs of an account one after another. Two requests are never closer than the host's delay. Pure
 * functions of state and time. A turn is granted ahead of time, so that its task is at a worker when its request may
 * leave. At a host with a delay only one turn is `going`. When its request has left, or can no longer leave, the next
 * going turn is chosen (`next-turn.ts`). So no request is early, even if a worker is late or dies. If a job is alone
 * at such a host, its turns have several requests. A request of such a turn gets an entry when the request before it
 * has left. At a host without a delay, several turns run at the same time and share the requests in flight.
 */
import {
  CRAWL_DELAY_MS,
  HOST_REQUESTS_IN_FLIGHT_MAX,
  TURN_LATE_MS,
  TURN_LEAD_MS,
  TURN_MS_MAX,
  TURN_OVERDUE_MS,
  TURN_REQUESTS_MAX,
} from "../../../schemas/crawl/limits.ts";
import {
  grantableAt,
  hasCapacity,
  inFlight,
  nextStartAt,
  shareOf,
  spacedMax,
  spanRequests,
  visitsInFlight,
} from "./host-capacity.ts";
import { choose, departed, mustYield, runsAtOnce, TURN_GO_MS_MAX } from "./next-turn.ts";
import { entryAfter, type Moment, type Pace, type Turn, wantingJobs } from "./pace-state.ts";

/** Longest wait after a start time for the report that the request has left: lateness, plus the time of a call. */
export const TURN_UNREPORTED_MS = TURN_LATE_MS + 250;
/** Pause before a waiting worker asks again, a tenth of the default delay: the time of a call on a busy machine. */
const TURN_ASK_MS = 50;
/**
 * Shortest pause before a waiting worker asks again. At a host without a delay, the host is idle during this pause.
 */
const TURN_ASK_SOON_MS = 15;
/** Longest pause before a waiting worker asks again at a host without a delay, whose turns take long. */
const TURN_ASK_LATE_MS = 1_000;
/**
 * Longest time that a worker waits for the start time of a robots.txt request. If the start time is later, the fetch
 * continues in another turn.
 */
export const ROBOTS_WAIT_MS_MAX = 60_000;

export interface Granted {
  turn: string;
  account: string;
  job: string;
  requests: number;
}

export type Begun =
  | { state: "gone" }
  | { state: "wait"; askAgainInMs: number }
  | { state: "go"; waitMs: number; atOnce: number };

/** Sets the number of requests that a job wants; 0 removes it from the list. */
export function want(pace: Pace, account: string, job: string, wants: number): Pace {
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

/** Grants all turns that are possible now. Call it after every change, and at `nextLookAt`. */
export function grant(
  pace: Pace,
  { newId, requestsMax, ...moment }: Moment & { newId: () => string; requestsMax: number },
): { pace: Pace; granted: Granted[] } {
  const { delayMs } = moment;
  let next = settle(pace, moment);
  const granted: Granted[] = [];
  for (;;) {
    const { accounts: waiting } = next;
    const first = waiting.find(({ account }) => hasCapacity(next, moment, account));
    const [job, ...jobs] = first?.jobs ?? [];
    if (!first || !job) break;
    const others = waiting.filter((one) => one !== first);
    const most = delayMs > 0 ? spacedMax(next, job.job, delayMs) : TURN_REQUESTS_MAX;
    const requests = Math.min(job.wants, most, requestsMax);
    const turn = newId();
    const { account } = first;
    const left = job.wants - requests;
    // A served job goes to the end of its account, and the account to the end of all accounts.
    const served = { account, jobs: left > 0 ? [...jobs, { job: job.job, wants: left }] : jobs };
    const dueAt = nextStartAt(next, moment);
    const accounts = served.jobs.length > 0 ? [...others, served] : others;
    next = withTurn({ ...next, accounts }, turn, {
      ...{ account, job: job.job, requests, asked: false, atOnce: 0, dueAt },
    });
    granted.push({ turn, account, job: job.job, requests });
  }
  return { pace: next, granted };
}

/**
 * Grants a turn for a request of the site itself: for its own robots.txt, or for a visit. `next-turn.ts` says when it
 * goes before others.
 */
export function grantOwn(
  pace: Pace,
  turn: string,
  { isVisit = false, ...moment }: Moment & { isVisit?: boolean },
): Pace {
  const dueAt = nextStartAt(pace, moment);
  const own = { account: "", job: "", requests: 1, asked: false, atOnce: 0, dueAt };
  return withTurn(pace, turn, isVisit ? { ...own, isVisit } : own);
}

/**
 * Replies to a worker that is ready to make the request of this entry. `wanted` is the number of requests that the
 * worker still has. `gone` means that the turn is unknown, or that it could not start for a long time: then its job
 * gets another turn. A worker that calls again must ignore the earlier reply.
 */
export function begin(
  unsettled: Pace,
  turn: string,
  { wanted = 1, ...moment }: Moment & { wanted?: number },
): { pace: Pace; begun: Begun } {
  const pace = settle(unsettled, moment);
  const granted = pace.turns[turn];
  if (granted === undefined) return { pace, begun: { state: "gone" } };
  if (pace.awayUntil - moment.now > waitMsMax(granted)) return gone(pace, turn, moment);
  return moment.delayMs === 0
    ? beginAtOnce(pace, turn, granted, moment)
    : beginSpaced(pace, turn, granted, { ...moment, wanted });
}

/** Returns the pace with the turn held by this worker, or undefined where another worker holds it. */
export function hold(pace: Pace, turn: string, by: string | undefined): Pace | undefined {
  const granted = pace.turns[turn];
  if (granted === undefined || by === undefined || granted.by === by) return pace;
  return granted.by === undefined ? withTurn(pace, turn, { ...granted, by }) : undefined;
}

/** Records that the request of an entry has left. With `again`, one more request of the same entry has left. */
export function started(
  pace: Pace,
  turn: string,
  {
    again = false,
    lateMs,
    ...moment
  }: Moment & { again?: boolean | undefined; lateMs?: number | undefined },
): Pace {
  const granted = pace.turns[turn];
  const isGoing = pace.going?.turn === turn;
  if (granted === undefined) return pace;
  // If the turn is not going, the report is a repetition or comes from a late worker. A repetition is ignored; the
  // request of a late worker counts.
  if (!isGoing && !again && granted.startedAt !== undefined) return pace;
  const { going, ...others } = pace;
  const { now, delayMs } = moment;
  // The delay counts from the departure of the request, without the time that the report took.
  const leftBy = isGoing && going && lateMs !== undefined ? going.startAt + lateMs : now;
  const startedAt = Math.min(now, leftBy);
  const left = departed(others, granted, startedAt);
  const next = withNext(left, turn, { ...granted, startedAt }, moment);
  if (isGoing || going === undefined) return choose(next, moment);
  // Postpones the going turn. Its worker may know only the earlier start time, which `toldAt` keeps.
  const startAt = Math.max(going.startAt, now + delayMs);
  const { toldAt = going.startAt } = going;
  return { ...next, going: { ...going, startAt, toldAt } };
}

/**
 * Ends these entries. The going one, else the last, ends after the others, by `end`. So the next turn is chosen once.
 */
export function finishAll(
  pace: Pace,
  entries: readonly string[],
  { end, ...moment }: Moment & { end: typeof finish },
): Pace {
  const last = entries.find((entry) => entry === pace.going?.turn) ?? entries.at(-1) ?? "";
  const others = entries.filter((entry) => entry !== last);
  return end(others.reduce(finishedQuietly, pace), last, moment);
}

/** Ends a turn whose worker has made its requests or returned it. */
export function finish(pace: Pace, turn: string, moment: Moment): Pace {
  const { [turn]: finished, ...turns } = pace.turns;
  if (finished === undefined) return pace;
  const { going, ...others } = { ...pace, turns };
  if (going === undefined) return markEnd(others, finished, moment);
  if (going.turn !== turn) return { ...others, going };
  // The site does not know whether the request has left. Before its start time it certainly has not.
  const { toldAt = going.startAt } = going;
  const mayHaveLeft = toldAt <= moment.now;
  return choose(mayHaveLeft ? departed(others, finished, moment.now) : others, moment);
}

/** Ends a turn whose worker may not know that the turn has ended. So the worker may still send the request. */
export function lose(pace: Pace, turn: string, moment: Moment): Pace {
  if (pace.going?.turn !== turn) return finish(pace, turn, moment);
  const { going, ...others } = finishedQuietly(pace, turn);
  const leftBy = pace.going.startAt + TURN_LATE_MS;
  return choose(departed(others, pace.turns[turn], leftBy), moment);
}

/** Ends a turn of which no request was or will be made. */
export function giveBack(pace: Pace, turn: string, moment: Moment): Pace {
  const { going, ...others } = finishedQuietly(pace, turn);
  return going === undefined || going.turn === turn ? choose(others, moment) : { ...others, going };
}

/** Returns when `grant` must run again without a message: a turn becomes overdue or lost, or can be granted. */
export function nextLookAt(pace: Pace, moment: Moment): number | undefined {
  const { now } = moment;
  const times = Object.values(pace.turns).flatMap(({ startedAt, dueAt }) =>
    startedAt === undefined
      ? [dueAt + TURN_OVERDUE_MS, dueAt + TURN_MS_MAX]
      : [startedAt + TURN_MS_MAX],
  );
  if (pace.going !== undefined) times.push(pace.going.startAt + TURN_UNREPORTED_MS);
  if (pace.accounts.length > 0) times.push(grantableAt(pace, moment));
  const ahead = times.filter((time) => time > now);
  return ahead.length === 0 ? undefined : Math.min(...ahead);
}

/** Returns when this pace can be forgotten without loss; undefined while turns or jobs wait. */
export function idleFrom(pace: Pace, { delayMs }: Moment): number | undefined {
  const { accounts, turns, going, lastStartAt, awayUntil } = pace;
  if (accounts.length > 0 || Object.keys(turns).length > 0 || going) return undefined;
  // An unknown host has a delay too.
  return Math.max(lastStartAt + Math.max(delayMs, CRAWL_DELAY_MS), awayUntil);
}

function beginSpaced(
  pace: Pace,
  turn: string,
  granted: Turn,
  { wanted, ...moment }: Moment & { wanted: number },
): { pace: Pace; begun: Begun } {
  const { now, delayMs } = moment;
  const { going } = pace;
  // The turn was granted at a shorter delay or none.
  if (granted.requests > spanRequests(delayMs)) return gone(pace, turn, moment);
  const waiting = withAsked(pace, turn, { ...moment, wanted });
  if (going !== undefined && going.turn !== turn) {
    return { pace: waiting, begun: wait(going.startAt - now + askMs(moment)) };
  }
  if (runsAtOnce(pace)) return { pace: waiting, begun: wait(TURN_ASK_MS) };
  const startAt = Math.max(now, going?.startAt ?? nextStartAt(pace, moment), pace.awayUntil);
  const waitMs = startAt - now;
  if (waitMs > waitMsMax(granted)) return gone(pace, turn, moment);
  if (waitMs > TURN_GO_MS_MAX) {
    return { pace: waiting, begun: wait(waitMs - TURN_GO_MS_MAX + askMs(moment)) };
  }
  if (going === undefined && mustYield(pace, granted, moment)) {
    return { pace: waiting, begun: wait(askMs(moment)) };
  }
  const go = { state: "go", waitMs, atOnce: 1 } as const;
  // The usual case changes nothing, so the reply waits for no commit.
  if (going?.startAt === startAt) return { pace, begun: go };
  return { pace: { ...waiting, going: { ...going, turn, startAt } }, begun: go };
}

function beginAtOnce(
  pace: Pace,
  turn: string,
  granted: Turn,
  { now }: Moment,
): { pace: Pace; begun: Begun } {
  const others = finishedQuietly(pace, turn);
  const free = HOST_REQUESTS_IN_FLIGHT_MAX - inFlight(others);
  const waiting = granted.asked ? pace : withTurn(pace, turn, { ...granted, asked: true });
  if (pace.awayUntil > now) return { pace: waiting, begun: wait(pace.awayUntil - now) };
  const alone = Object.values(others.turns).length === 0 && pace.accounts.length === 0;
  const share = alone ? HOST_REQUESTS_IN_FLIGHT_MAX : shareOf(pace);
  // All visits together have the share of one job.
  const used = granted.isVisit ? visitsInFlight(others) : 0;
  const atOnce = Math.min(free, share - used, granted.requests);
  if (atOnce <= 0) return { pace: waiting, begun: wait(askSoonMs(others, now)) };
  const next = withTurn(pace, turn, { ...granted, asked: true, startedAt: now, atOnce });
  return { pace: departed(next, granted, now), begun: { state: "go", waitMs: 0, atOnce } };
}

/** Ends turns whose worker died. Chooses another going turn if the request's departure was not reported in time. */
function settle(pace: Pace, moment: Moment): Pace {
  const { now } = moment;
  let next = pace;
  for (const [turn, { startedAt, dueAt }] of Object.entries(pace.turns)) {
    if (now >= (startedAt ?? dueAt) + TURN_MS_MAX) next = finish(next, turn, moment);
  }
  const { going, ...others } = next;
  if (going === undefined || now < going.startAt + TURN_UNREPORTED_MS) return next;
  const lapsed = others.turns[going.turn];
  const kept = lapsed ? withTurn(others, going.turn, { ...lapsed, asked: false }) : others;
  return choose(departed(kept, lapsed, going.startAt + TURN_LATE_MS), moment);
}

/** Chooses the next going turn at the end of a turn. The last of its concurrent requests may have left just now. */
function markEnd(pace: Pace, finished: Turn, moment: Moment): Pace {
  const many = finished.startedAt !== undefined && finished.atOnce > 0;
  return choose(many ? departed(pace, finished, moment.now) : pace, moment);
}

const gone = (pace: Pace, turn: string, moment: Moment) => ({
  pace: finish(pace, turn, moment),
  begun: { state: "gone" } as const,
});

const wait = (ms: number): Begun => ({
  state: "wait",
  askAgainInMs: Math.max(TURN_ASK_SOON_MS, Math.round(ms)),
});

/** Extra wait: the worker asks again just after the reply can change, and well before the next request is due. */
const askMs = ({ delayMs }: Moment) => Math.min(TURN_ASK_MS, Math.round(delayMs / 4));

/** Returns a worker's wait at a host without a delay: a sixteenth of the time since its oldest running turn began. */
function askSoonMs({ turns }: Pace, now: number): number {
  const since = Object.values(turns).flatMap(({ startedAt }) => startedAt ?? []);
  return Math.min((now - Math.min(now, ...since)) / 16, TURN_ASK_LATE_MS);
}

/** Records that a worker waits for a start time. If its request has left, it needs another: a redirect or a retry. */
function withAsked(
  pace: Pace,
  turn: string,
  { wanted, ...moment }: Moment & { wanted: number },
): Pace {
  const granted = pace.turns[turn];
  if (granted === undefined) return pace;
  const { startedAt, ...again } = granted;
  const isNew = !granted.asked || startedAt !== undefined || granted.requests > 1;
  if (granted.account === "") {
    const dueAt = nextStartAt(pace, moment);
    if (!isNew && dueAt < granted.dueAt + TURN_OVERDUE_MS) return pace;
    return withTurn(pace, turn, { ...again, dueAt, asked: true });
  }
  if (!isNew) return pace;
  const dueAt = startedAt === undefined ? granted.dueAt : moment.now;
  // The job may have had fewer requests than were granted, so the number of remaining requests comes from the worker.
  const rest = granted.requests > 1 && wanted > 1 ? { more: wanted - 1 } : {};
  return withTurn(pace, turn, { ...again, ...rest, requests: 1, dueAt, asked: true });
}

/** Adds an entry for the turn's next request, unless another job wants requests. */
function withNext(pace: Pace, turn: string, { more, ...left }: Turn, moment: Moment): Pace {
  const next = withTurn(pace, turn, left);
  const entry = entryAfter(turn);
  const isAlone = wantingJobs(pace).every((job) => job === left.job);
  if (more === undefined || !isAlone || next.turns[entry] !== undefined) return next;
  const { startedAt: _, ...others } = left;
  const rest = more > 1 ? { more: more - 1 } : {};
  const dueAt = nextStartAt(next, moment);
  return withTurn(next, entry, { ...others, ...rest, asked: false, dueAt });
}

/**
 * Returns how long a turn may wait at its worker. Turns of the site itself may wait longer: they are few, and other
 * requests need their result.
 */
const waitMsMax = ({ account }: Turn) => (account === "" ? ROBOTS_WAIT_MS_MAX : TURN_LEAD_MS);

const withTurn = (pace: Pace, turn: string, value: Turn): Pace => ({
  ...pace,
  turns: { ...pace.turns, [turn]: value },
});

function finishedQuietly(pace: Pace, turn: string): Pace {
  const { [turn]: _, ...turns } = pace.turns;
  return { ...pace, turns };
}

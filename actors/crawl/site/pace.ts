/**
 * Whose turn it is to ask a host, and when: accounts by turns, within an account its jobs by turns, and never two
 * requests closer than the host's delay. Pure: times come in, the next state comes out.
 *
 * A turn is granted ahead, so that its task is with a worker when it is due. Where there is a delay only one turn at a
 * time is `going`: the next is chosen once the request of this one is known to have left, or can leave no more. So no
 * request is early, whatever was late and whoever died. A job that is alone there has turns of several requests, each an
 * entry of its own once the one before has left. Where there is no delay, turns share the requests in flight.
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
  hasRoom,
  inFlight,
  nextStartAt,
  shareOf,
  spacedMax,
  spanRequests,
} from "./host-capacity.ts";
import { entryAfter, type Moment, type Pace, type Turn, wantingJobs } from "./pace-state.ts";

/** How long ahead a worker is told when to start: with a lease's time less than what a task waits to be given to another. */
export const TURN_GO_MS_MAX = 2_000;
/** A turn told to go that was not heard to have started so long after its time never will: that lateness, and a call's way. */
export const TURN_UNHEARD_MS = TURN_LATE_MS + 250;
/** Pause before a worker that waits for its turn asks again: what a call takes on a busy machine, a tenth of the delay. */
const TURN_ASK_MS = 50;
/** The same where there is no delay, and each pause is time in which the host could serve. */
const TURN_ASK_SOON_MS = 15;
/** The longest such pause, where turns take long. */
const TURN_ASK_LATE_MS = 1_000;
/** How long a worker waits for the place of one such request; where that is further off, the fetch goes on in another turn. */
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

/** The job has so many requests to make; it replaces what it wanted before. 0 takes it off the list. */
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

/** Grants what may be granted now. Call it after every change, and at `nextLookAt`. */
export function grant(
  pace: Pace,
  { newId, requestsMax, ...moment }: Moment & { newId: () => string; requestsMax: number },
): { pace: Pace; granted: Granted[] } {
  const { delayMs } = moment;
  let next = settle(pace, moment);
  const granted: Granted[] = [];
  while (hasRoom(next, moment)) {
    const [first, ...others] = next.accounts;
    const [job, ...jobs] = first?.jobs ?? [];
    if (!first || !job) break;
    const most = delayMs > 0 ? spacedMax(next, job.job, delayMs) : TURN_REQUESTS_MAX;
    const requests = Math.min(job.wants, most, requestsMax);
    const turn = newId();
    const { account } = first;
    const left = job.wants - requests;
    // Who was served goes to the end: the job among its account's, the account among all.
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

/** A turn for a request of the site's own, ahead of all that wait. */
export function grantOwn(pace: Pace, turn: string, moment: Moment): Pace {
  const dueAt = nextStartAt(pace, moment);
  const own = { account: "", job: "", requests: 1, asked: false, atOnce: 0, dueAt };
  return withTurn(pace, turn, own);
}

/**
 * The turn's worker is ready for this entry's request, which at first is one of the `wanted` that it has. `gone` is a turn that
 * is not known any more, or cannot begin for long: its job is given another. A worker that asks again makes no use of what
 * it was told before.
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

/** The turn is whose it is, or of who asks first; undefined where it is another's. */
export function hold(pace: Pace, turn: string, by: string | undefined): Pace | undefined {
  const granted = pace.turns[turn];
  if (granted === undefined || by === undefined || granted.by === by) return pace;
  return granted.by === undefined ? withTurn(pace, turn, { ...granted, by }) : undefined;
}

/** The turn's request has left, or one more for it. */
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
  // Of one that is not going this is a repetition, or the request of a worker that was too late: it counts.
  if (!isGoing && !again && granted.startedAt !== undefined) return pace;
  const { going, ...others } = pace;
  const { now, delayMs } = moment;
  // The report takes its time, which must not count.
  const leftBy = isGoing && going && lateMs !== undefined ? going.startAt + lateMs : now;
  const startedAt = Math.min(now, leftBy);
  const lastStartAt = Math.max(pace.lastStartAt, startedAt);
  const next = withNext({ ...others, lastStartAt }, turn, { ...granted, startedAt }, moment);
  if (isGoing || going === undefined) return choose(next, moment);
  // The one that goes may not have been told yet.
  const startAt = Math.max(going.startAt, now + delayMs);
  const { toldAt = going.startAt } = going;
  return { ...next, going: { ...going, startAt, toldAt } };
}

/** These entries of a turn are over, as one of them would be. */
export function finishAll(
  pace: Pace,
  entries: readonly string[],
  { end, ...moment }: Moment & { end: typeof finish },
): Pace {
  const last = entries.find((entry) => entry === pace.going?.turn) ?? entries.at(-1) ?? "";
  const others = entries.filter((entry) => entry !== last);
  return end(others.reduce(finishedQuietly, pace), last, moment);
}

/** The turn is over: its worker has made its requests, or gives it back. */
export function finish(pace: Pace, turn: string, moment: Moment): Pace {
  const { [turn]: finished, ...turns } = pace.turns;
  if (finished === undefined) return pace;
  const { going, ...others } = { ...pace, turns };
  if (going === undefined) return markEnd(others, finished, moment);
  if (going.turn !== turn) return { ...others, going };
  // Whether its request left is not known; before its time it surely did not.
  const { toldAt = going.startAt } = going;
  const lastStartAt = Math.max(others.lastStartAt, toldAt <= moment.now ? moment.now : 0);
  return choose({ ...others, lastStartAt }, moment);
}

/** The turn is over, but whoever has it may not know: the request that it was told to make may leave yet. */
export function lose(pace: Pace, turn: string, moment: Moment): Pace {
  if (pace.going?.turn !== turn) return finish(pace, turn, moment);
  const { going, ...others } = finishedQuietly(pace, turn);
  const lastStartAt = Math.max(pace.lastStartAt, pace.going.startAt + TURN_LATE_MS);
  return choose({ ...others, lastStartAt }, moment);
}

/** The turn is over, and no request of it was or will be made. */
export function giveBack(pace: Pace, turn: string, moment: Moment): Pace {
  const { going, ...others } = finishedQuietly(pace, turn);
  return going === undefined || going.turn === turn ? choose(others, moment) : { ...others, going };
}

/** When `grant` should be called again though nothing happens: a turn is overdue or lost, or one may be granted. */
export function nextLookAt(pace: Pace, moment: Moment): number | undefined {
  const { now } = moment;
  const times = Object.values(pace.turns).flatMap(({ startedAt, dueAt }) =>
    startedAt === undefined
      ? [dueAt + TURN_OVERDUE_MS, dueAt + TURN_MS_MAX]
      : [startedAt + TURN_MS_MAX],
  );
  if (pace.going !== undefined) times.push(pace.going.startAt + TURN_UNHEARD_MS);
  if (pace.accounts.length > 0) times.push(grantableAt(pace, moment));
  const ahead = times.filter((time) => time > now);
  return ahead.length === 0 ? undefined : Math.min(...ahead);
}

/** Undefined while there are turns or somebody waits; else when nothing would be lost by forgetting all of it. */
export function idleFrom(pace: Pace, { delayMs }: Moment): number | undefined {
  const { accounts, turns, going, lastStartAt, awayUntil } = pace;
  if (accounts.length > 0 || Object.keys(turns).length > 0 || going) return undefined;
  // A host that nothing is known of has a delay as well.
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
  // It was granted while the host asked for no delay, or for a shorter one.
  if (granted.requests > spanRequests(delayMs)) return gone(pace, turn, moment);
  const waiting = withAsked(pace, turn, { ...moment, wanted });
  if (going !== undefined && going.turn !== turn) {
    return { pace: waiting, begun: wait(going.startAt - now + askMs(moment)) };
  }
  if (runsAtOnce(pace)) return { pace: waiting, begun: wait(TURN_ASK_MS) };
  if (going === undefined && granted.account !== "" && ownIsDue(pace, now)) {
    return { pace: waiting, begun: wait(askMs(moment)) };
  }
  const startAt = Math.max(now, going?.startAt ?? nextStartAt(pace, moment), pace.awayUntil);
  const waitMs = startAt - now;
  if (waitMs > waitMsMax(granted)) return gone(pace, turn, moment);
  if (waitMs > TURN_GO_MS_MAX) {
    return { pace: waiting, begun: wait(waitMs - TURN_GO_MS_MAX + askMs(moment)) };
  }
  const go = { state: "go", waitMs, atOnce: 1 } as const;
  // The usual case changes nothing, so that the answer waits for no commit.
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
  if (free <= 0) return { pace: waiting, begun: wait(askSoonMs(others, now)) };
  const alone = Object.values(others.turns).length === 0 && pace.accounts.length === 0;
  const share = alone ? HOST_REQUESTS_IN_FLIGHT_MAX : shareOf(pace);
  const atOnce = Math.min(free, share, granted.requests);
  const next = withTurn(pace, turn, { ...granted, asked: true, startedAt: now, atOnce });
  return { pace: { ...next, lastStartAt: now }, begun: { state: "go", waitMs: 0, atOnce } };
}

/** Forgets what cannot come any more: a request that was not heard to leave, a turn whose worker died with it. */
function settle(pace: Pace, moment: Moment): Pace {
  const { now } = moment;
  let next = pace;
  for (const [turn, { startedAt, dueAt }] of Object.entries(pace.turns)) {
    if (now >= (startedAt ?? dueAt) + TURN_MS_MAX) next = finish(next, turn, moment);
  }
  const { going, ...others } = next;
  if (going === undefined || now < going.startAt + TURN_UNHEARD_MS) return next;
  const lapsed = others.turns[going.turn];
  const left = Math.max(others.lastStartAt, going.startAt + TURN_LATE_MS);
  const kept = lapsed ? withTurn(others, going.turn, { ...lapsed, asked: false }) : others;
  return choose({ ...kept, lastStartAt: left }, moment);
}

/** The next to go is one whose worker waits: the site's own, else the one that was granted first. */
function choose(pace: Pace, moment: Moment): Pace {
  if (moment.delayMs === 0 || pace.going !== undefined || runsAtOnce(pace)) return pace;
  const startAt = nextStartAt(pace, moment);
  // A worker is told no longer ahead; until then another may be quicker.
  if (startAt - moment.now > TURN_GO_MS_MAX) return pace;
  const asking = Object.entries(pace.turns).filter(
    ([, { asked, startedAt, requests }]) => asked && startedAt === undefined && requests === 1,
  );
  const [turn] = asking.find(([, { account }]) => account === "") ?? asking[0] ?? [];
  return turn === undefined ? pace : { ...pace, going: { turn, startAt } };
}

/** Turns that began while the host asked for no delay are still at it. */
const runsAtOnce = (pace: Pace) =>
  Object.values(pace.turns).some(({ startedAt, atOnce }) => startedAt !== undefined && atOnce > 0);

/** The last request of a turn of many may have left just now. */
function markEnd(pace: Pace, finished: Turn, moment: Moment): Pace {
  const many = finished.startedAt !== undefined && finished.atOnce > 0;
  const lastStartAt = many ? Math.max(pace.lastStartAt, moment.now) : pace.lastStartAt;
  return choose({ ...pace, lastStartAt }, moment);
}

const gone = (pace: Pace, turn: string, moment: Moment) => ({
  pace: finish(pace, turn, moment),
  begun: { state: "gone" } as const,
});

const wait = (ms: number): Begun => ({
  state: "wait",
  askAgainInMs: Math.max(TURN_ASK_SOON_MS, Math.round(ms)),
});

/** A little over the time at which the answer will be another, and well before the next request is due. */
const askMs = ({ delayMs }: Moment) => Math.min(TURN_ASK_MS, Math.round(delayMs / 4));

/** Often where turns are short: what a turn waits too long is a small part of what one takes. */
function askSoonMs({ turns }: Pace, now: number): number {
  const since = Object.values(turns).flatMap(({ startedAt }) => startedAt ?? []);
  return Math.min((now - Math.min(now, ...since)) / 16, TURN_ASK_LATE_MS);
}

/** A worker that asks once more after its request has left has another to make, a redirect's or that of a new try. */
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
  // The job may have had fewer than were granted.
  const rest = granted.requests > 1 && wanted > 1 ? { more: wanted - 1 } : {};
  return withTurn(pace, turn, { ...again, ...rest, requests: 1, dueAt, asked: true });
}

/** A request has left: the one that comes after it in its turn is next, unless another job has come. */
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

/** A site's own turns wait in their workers: they are few, and what they ask for keeps others waiting. */
const waitMsMax = ({ account }: Turn) => (account === "" ? ROBOTS_WAIT_MS_MAX : TURN_LEAD_MS);

/** A turn of the site's own is about to ask for its moment again: it goes first. */
const ownIsDue = (pace: Pace, now: number) =>
  Object.values(pace.turns).some(
    ({ account, asked, startedAt, dueAt }) =>
      account === "" && asked && startedAt === undefined && now < dueAt + TURN_OVERDUE_MS,
  );

const withTurn = (pace: Pace, turn: string, value: Turn): Pace => ({
  ...pace,
  turns: { ...pace.turns, [turn]: value },
});

function finishedQuietly(pace: Pace, turn: string): Pace {
  const { [turn]: _, ...turns } = pace.turns;
  return { ...pace, turns };
}

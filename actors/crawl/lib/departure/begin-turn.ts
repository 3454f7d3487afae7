/** Asks a site when a turn's request may leave, and waits until shortly before that time. */
import { TURN_LATE_MS } from "../../../../schemas/crawl/limits.ts";
import { type CrawlIntent, type PageVerdict, site } from "../../../../schemas/crawl/site.ts";
import type { ActorClient, CallOptions } from "../../../runtime/calls/actor-client.ts";
import { type Clock, OVER } from "../../../runtime/lib/clock.ts";
import type { Semaphore } from "../../../runtime/lib/semaphore.ts";

/** Longest wait during which a turn holds its place. Others could use the place meanwhile. */
const TURN_HELD_WAIT_MS = 250;
/**
 * How long before its start time a request takes a place and begins to connect. TCP and TLS with a host at 100 ms
 * round-trip time fit.
 */
export const TURN_AHEAD_MS = 200;

export interface TurnToBegin {
  host: string;
  turn: string;
  /**
   * Number of the request within its turn, if each request of the turn has its own start time. The first request is
   * 0.
   */
  nth?: number;
  urls: readonly string[];
  intent: CrawlIntent;
  /** Id of this run of the task. */
  by: string;
}

export interface BeginParts {
  call: ActorClient["call"];
  clock: Clock;
  signal: AbortSignal;
  /**
   * Semaphore of concurrent requests. A request takes a place before its start time and holds it until it is
   * finished.
   */
  places: Pick<Semaphore, "take">;
}

/** The time window in which a request may leave, in monotonic clock time. */
export interface Moment {
  /** Start time that the site has set, plus the part of the reply's network delay that cannot be measured. */
  startAt: number;
  /**
   * TURN_LATE_MS after the start time that the site has set, minus the part of the reply's network delay that cannot
   * be measured.
   */
  lateAt: number;
}

export type Begun =
  /** The turn has expired at the site, or another worker holds it. */
  | { state: "gone" }
  | {
      state: "now";
      atOnce: number;
      /** The host has a delay, so `moment` is only for the first allowed request of the turn. */
      spaced: boolean;
      verdicts: readonly PageVerdict[];
      /**
       * Window of the first request. It may begin up to TURN_AHEAD_MS in the future, so that the request can connect
       * before.
       */
      moment: Moment;
      /** Releases the semaphore place that the first request holds. */
      release(): void;
    };

/** The site's reply in this worker's time. */
type SiteReply =
  | { state: "gone" }
  | { state: "wait"; until: number }
  | {
      state: "go";
      moment: Moment;
      atOnce: number;
      spaced: boolean;
      verdicts: readonly PageVerdict[];
    };
type Go = Extract<SiteReply, { state: "go" }>;

export async function beginTurn(turn: TurnToBegin, parts: BeginParts): Promise<Begun> {
  const { clock, signal, places } = parts;
  let release: (() => void) | undefined;
  let earlier: Go | undefined;
  try {
    for (;;) {
      signal.throwIfAborted();
      const reply = await (earlier ? askAgain(turn, parts, earlier) : ask(turn, parts));
      if (reply.state === "gone") return reply;
      const until = reply.state === "wait" ? reply.until : reply.moment.startAt;
      if (until - clock.monotonic() > TURN_HELD_WAIT_MS) {
        release?.();
        release = undefined;
      }
      if (reply.state === "wait") {
        earlier = undefined;
        await waitUntil(clock, until, signal);
        continue;
      }
      const { moment, atOnce, spaced, verdicts } = reply;
      await waitUntil(clock, until - TURN_AHEAD_MS, signal);
      // Asks once more for a more exact start time. The first reply may have waited for a large commit of the site.
      // After the previous request has left, a commit is small, so the second reply is faster.
      if (!earlier && until - clock.monotonic() > TURN_AHEAD_MS / 2) {
        earlier = reply;
        continue;
      }
      const idle = verdicts.every(({ allowed }) => !allowed);
      if (idle) return { state: "now", atOnce, spaced, verdicts, moment, release() {} };
      release ??= await places.take(signal);
      if (clock.monotonic() > moment.lateAt) {
        earlier = undefined;
        continue;
      }
      const held = release;
      release = undefined;
      return { state: "now", atOnce, spaced, verdicts, moment, release: held };
    }
  } finally {
    release?.();
  }
}

/** The time of day has whole milliseconds. */
const CLOCK_STEP_MS = 1;

async function ask(
  { host, ...asked }: TurnToBegin,
  { call, clock }: Pick<BeginParts, "call" | "clock">,
  options: CallOptions = {},
): Promise<SiteReply> {
  const askedAt = clock.monotonic();
  const answer = await call(site, host, "begin", asked, options);
  // A busy machine may suspend the process between any two of the next lines, for many milliseconds. So the monotonic
  // clock is read before and after the wall clock.
  const before = clock.monotonic();
  const epochNow = clock.now();
  const now = clock.monotonic();
  if (answer.state === "gone") return { state: "gone" };
  if (answer.state === "wait") return { state: "wait", until: now + answer.askAgainInMs };
  const { waitMs, atOnce, spaced = false, verdicts, told } = answer;
  // The site replied at some time between `askedAt` and `now`. If the site reads the same clock as this worker, the
  // reply contains that time exactly, unless the time of day was set meanwhile.
  const isSame = told !== undefined && told.clock === clock.id;
  const saidMs = isSame ? epochNow - told.at : Number.NaN;
  const isOurs = saidMs >= -CLOCK_STEP_MS && saidMs <= now - askedAt + CLOCK_STEP_MS;
  const agoMs = isOurs ? saidMs : 0;
  const startAt = now - agoMs + waitMs;
  const lateAt = (isOurs ? before - agoMs : askedAt) + waitMs + TURN_LATE_MS;
  return { state: "go", moment: { startAt, lateAt }, atOnce, spaced, verdicts };
}

/**
 * Asks again while waiting. The earlier reply stays valid if none comes in time, for example because the site's host
 * has died.
 */
async function askAgain(turn: TurnToBegin, parts: BeginParts, earlier: Go): Promise<SiteReply> {
  const { clock, signal } = parts;
  const over = new AbortController();
  const options = { signal: AbortSignal.any([signal, over.signal]) };
  try {
    const reply = await Promise.race([
      ask(turn, parts, options),
      waitUntil(clock, earlier.moment.startAt, options.signal).then(() => earlier),
    ]);
    if (reply === earlier || reply.state !== "go") return reply;
    return { ...reply, moment: intersected(earlier.moment, reply.moment) };
  } finally {
    over.abort(OVER);
  }
}

/**
 * Combines the windows of two replies about one request: each reply's unmeasured delay narrows the window, so the
 * wider bounds are right. If the replies contradict each other, the later one is valid.
 */
function intersected(before: Moment, after: Moment): Moment {
  const isMoved =
    after.startAt < before.lateAt - TURN_LATE_MS || after.lateAt - TURN_LATE_MS > before.startAt;
  if (isMoved) return after;
  return {
    startAt: Math.min(before.startAt, after.startAt),
    lateAt: Math.max(before.lateAt, after.lateAt),
  };
}

/** Timers may fire slightly early, but a request must not leave early. */
export async function waitUntil(clock: Clock, at: number, signal: AbortSignal): Promise<void> {
  for (let ms = at - clock.monotonic(); ms > 0; ms = at - clock.monotonic()) {
    await clock.wait(Math.ceil(ms), signal);
    signal.throwIfAborted();
  }
}

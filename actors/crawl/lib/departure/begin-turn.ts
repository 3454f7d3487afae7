/** Asks a site for the moment at which a turn's request may leave, and waits until shortly before it. */
import { TURN_LATE_MS } from "../../../../schemas/crawl/limits.ts";
import { type CrawlIntent, type PageVerdict, site } from "../../../../schemas/crawl/site.ts";
import type { ActorClient, CallOptions } from "../../../runtime/calls/actor-client.ts";
import { type Clock, OVER } from "../../../runtime/lib/clock.ts";
import type { Semaphore } from "../../../runtime/lib/semaphore.ts";

/** Longest wait during which a turn holds its place. Others could use the place meanwhile. */
const TURN_HELD_WAIT_MS = 250;
/**
 * How long before its moment a request takes its place and begins to connect: TCP and TLS with a host 100 ms away.
 */
export const TURN_AHEAD_MS = 200;

export interface TurnToBegin {
  host: string;
  turn: string;
  /** Number of the request within its turn, where each has a moment of its own. The first is 0. */
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
  /** A request holds a place from its moment on. */
  places: Pick<Semaphore, "take">;
}

/** The interval in which a request may leave, by the monotonic clock. */
export interface Moment {
  /** The site's moment, plus the part of the reply's network delay that cannot be measured. */
  startAt: number;
  /** TURN_LATE_MS after the site's moment, minus the same unknown delay. */
  lateAt: number;
}

export type Begun =
  /** The turn has expired at the site, or another worker holds it. */
  | { state: "gone" }
  | {
      state: "now";
      atOnce: number;
      /** The moment is for the first allowed request only. */
      spaced: boolean;
      verdicts: readonly PageVerdict[];
      /** The moment may be TURN_AHEAD_MS away, so that the request can connect ahead. */
      moment: Moment;
      /** Returns the place of the first request. */
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
      // A reply waits for the commit of the site. Now that the request before has left, the commit is small.
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

async function ask(
  { host, ...asked }: TurnToBegin,
  { call, clock }: Pick<BeginParts, "call" | "clock">,
  options: CallOptions = {},
): Promise<SiteReply> {
  const askedAt = clock.monotonic();
  const answer = await call(site, host, "begin", asked, options);
  // The process may be suspended between any two of these lines, for many milliseconds on a busy machine.
  const before = clock.monotonic();
  const epochNow = clock.now();
  const now = clock.monotonic();
  if (answer.state === "gone") return { state: "gone" };
  if (answer.state === "wait") return { state: "wait", until: now + answer.askAgainInMs };
  const { waitMs, atOnce, spaced = false, verdicts, told } = answer;
  // The time of the reply lies between the two. With the same clock as the site's it is exact.
  const isOurs = told !== undefined && told.clock === clock.id;
  const agoMs = isOurs ? epochNow - told.at : 0;
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

/** Intersects two replies about one moment. If they contradict each other, the later one counts. */
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

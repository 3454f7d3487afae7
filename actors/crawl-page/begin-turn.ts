/** Asks a site for the moment at which a turn's request may leave, waits for it, and sees to it that it leaves then or not at all. */
import { TURN_LATE_MS } from "../../schemas/crawl-limits.ts";
import { type CrawlIntent, type PageVerdict, site } from "../../schemas/site.ts";
import type { ActorClient } from "../runtime/actor-client.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Places } from "../runtime/places.ts";

export interface TurnToBegin {
  host: string;
  turn: string;
  urls: readonly string[];
  intent: CrawlIntent;
  /** Made anew for each run of a task. */
  by: string;
}

export interface BeginParts {
  call: ActorClient["call"];
  clock: Clock;
  signal: AbortSignal;
  /** What a request needs at hand once its moment has come. */
  places: Places;
}

export type Begun =
  /** The turn is the site's no more; somebody else will be given one. */
  | { state: "gone" }
  | {
      state: "now";
      atOnce: number;
      verdicts: readonly PageVerdict[];
      /** By the monotonic clock: a request that has not left by then must not. */
      lateAt: number;
      /** Gives the first request's place back. */
      release(): void;
    };

/** A place that others could use is not held through a longer wait than this. */
const HELD_WAIT_MS = 250;

export async function beginTurn(
  { host, ...asked }: TurnToBegin,
  { call, clock, signal, places }: BeginParts,
): Promise<Begun> {
  let release: (() => void) | undefined;
  try {
    for (;;) {
      signal.throwIfAborted();
      const askedAt = clock.monotonic();
      const answer = await call(site, host, "begin", asked);
      if (answer.state === "gone") return { state: "gone" };
      const waitMs = answer.state === "wait" ? answer.askAgainInMs : answer.waitMs;
      if (waitMs > HELD_WAIT_MS) {
        release?.();
        release = undefined;
      }
      await waitUntil(clock, clock.monotonic() + waitMs, signal);
      if (answer.state === "wait") continue;
      const { atOnce, verdicts } = answer;
      const lateAt = askedAt + waitMs + TURN_LATE_MS;
      const idle = verdicts.every(({ allowed }) => !allowed);
      if (idle) return { state: "now", atOnce, verdicts, lateAt, release() {} };
      release ??= await places.take(signal);
      if (clock.monotonic() > lateAt) continue;
      const held = release;
      release = undefined;
      return { state: "now", atOnce, verdicts, lateAt, release: held };
    }
  } finally {
    release?.();
  }
}

/** The request did not leave in time: its moment has passed, and it needs another. */
export class TooLate extends Error {}

/** What whoever makes a request keeps to, and tells. */
export interface Departure {
  /** Aborted, with TooLate among other reasons, when the request must not leave any more. */
  signal: AbortSignal;
  /** To be called just before it leaves: `signal` is aborted by then where that is too late. */
  onStarting(): void;
  /** To be called when it has left. */
  onStarted(): void;
}

/** While a request connects, its moment is asked for again so long before it has passed: a call's way on a busy machine. */
const BEGIN_AGAIN_MS = 500;

/**
 * Makes the one request of a turn that has begun, which must leave by `lateAt`. One that takes long to connect is told
 * to go again and again, and goes on for as long as it is told so without a wait. Rejects with TooLate.
 */
export async function inTime<T>(
  turn: TurnToBegin,
  { call, clock, signal }: Omit<BeginParts, "places">,
  lateAt: number,
  make: (departure: Departure) => Promise<T>,
): Promise<T> {
  const late = new AbortController();
  const left = new AbortController();
  const moment = { lateAt };
  void keepMoment(turn, { call, clock, left: left.signal }, moment).then(() => {
    if (!left.signal.aborted) late.abort(new TooLate());
  });
  try {
    return await make({
      signal: AbortSignal.any([signal, late.signal]),
      onStarting() {
        if (left.signal.aborted) return;
        // A process that stood still finds its connection before it finds that the time is over.
        if (clock.monotonic() > moment.lateAt) late.abort(new TooLate());
        // From here on it cannot be taken back: one that is made anew would be a second one.
        else left.abort();
      },
      onStarted: () => left.abort(),
    });
  } finally {
    left.abort();
  }
}

/** Resolves when the moment has passed, or the request has left. */
async function keepMoment(
  { host, ...asked }: TurnToBegin,
  { call, clock, left }: Pick<BeginParts, "call" | "clock"> & { left: AbortSignal },
  moment: { lateAt: number },
): Promise<void> {
  for (;;) {
    await clock.wait(Math.max(0, moment.lateAt - BEGIN_AGAIN_MS - clock.monotonic()), left);
    if (left.aborted) return;
    const askedAt = clock.monotonic();
    const answer = await Promise.race([
      // Without an answer the moment passes.
      call(site, host, "begin", asked).catch(() => undefined),
      clock.wait(Math.max(0, moment.lateAt - askedAt), left).then(() => undefined),
    ]);
    const goesOn =
      answer?.state === "go" &&
      answer.waitMs === 0 &&
      answer.verdicts.every(({ allowed }) => allowed) &&
      clock.monotonic() <= moment.lateAt;
    if (!goesOn) {
      await clock.wait(Math.max(0, moment.lateAt - clock.monotonic()), left);
      return;
    }
    moment.lateAt = askedAt + TURN_LATE_MS;
  }
}

/** Timers may fire a little early; a request never does. */
async function waitUntil(clock: Clock, at: number, signal: AbortSignal): Promise<void> {
  for (let ms = at - clock.monotonic(); ms > 0; ms = at - clock.monotonic()) {
    await clock.wait(Math.ceil(ms), signal);
    signal.throwIfAborted();
  }
}

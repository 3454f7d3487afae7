/** Lets one request of a turn leave within the time window that its site has set, or not at all. */
import { TURN_LATE_MS } from "../../../../schemas/crawl/limits.ts";
import { site } from "../../../../schemas/crawl/site.ts";
import { OVER } from "../../../runtime/lib/clock.ts";
import {
  type BeginParts,
  beginTurn,
  type Moment,
  type TurnToBegin,
  waitUntil,
} from "./begin-turn.ts";

/**
 * How long before the end of its time window a request that is still connecting asks the site again. A call on a busy
 * machine takes this long.
 */
const TURN_AGAIN_MS = 500;

/** The request did not leave within its time window and needs another one. */
export class TooLate extends Error {}

/**
 * The request was not made, or this worker cannot know whether it was made. The turn ends without an outcome for this
 * request.
 */
export class NotMade extends Error {}

/** The timing rules that a requester must follow and report. */
export interface Departure {
  /** Aborts when the request must not leave any more, with TooLate or NotMade among other reasons. */
  signal: AbortSignal;
  /**
   * Resolves at the start time, or `aheadMs` before it. The caller opens the connection first and then waits for
   * this. Rejects with the signal's reason.
   */
  due(aheadMs?: number): Promise<void>;
  /** Whether the request may still leave. Aborts `signal` if not. */
  mayLeave(): boolean;
  /**
   * The caller calls this if it cannot see when the request leaves, from the start time on. The request may then have
   * left even if it was cancelled later.
   */
  onUnseen(): void;
  /** The caller calls this just before the request leaves. If the time window has passed, this aborts `signal`. */
  onStarting(): void;
  /** The caller calls this when a request has left, also for each repetition. */
  onStarted(): void;
  /**
   * Waits for the time window of one more request for the same address. Resolves with false if the site grants none.
   */
  oneMore(): Promise<boolean>;
}

export interface DepartureParts extends Pick<BeginParts, "call" | "clock" | "signal"> {
  /** Aborts when the turn's pages are no longer wanted, because the job has ended. */
  ended?: AbortSignal;
  /** Called each time a request has left. The returned promise must resolve when the site has recorded that. */
  onLeft?: (left: Left) => Promise<unknown>;
}

export interface Left {
  /**
   * The same address was requested before in this entry of the turn, for example because the browser repeats the
   * request.
   */
  again: boolean;
  /** Upper bound of the time between the start time and the departure, in milliseconds. */
  lateMs: number;
}

/** A request that asks for another time window already holds its semaphore place, so it takes no second one. */
const NO_PLACES = { take: async () => () => {} };

/**
 * Makes one request within its time window. While the request connects, the site is asked again: each reply that
 * allows an immediate start extends the window. Rejects with TooLate or NotMade.
 */
export async function inTime<T>(
  turn: TurnToBegin,
  { call, clock, signal, ended, onLeft }: DepartureParts,
  first: Moment,
  make: (departure: Departure) => Promise<T>,
): Promise<T> {
  const late = new AbortController();
  let left = new AbortController();
  let moment = { ...first };
  let isUnseen = false;
  let requests = 0;
  let known: Promise<unknown> | undefined;
  const takeBack = () => late.abort(isUnseen ? new NotMade() : new TooLate());
  keep();
  const mayLeave = () => {
    if (!left.signal.aborted) {
      // After a suspension of the process, the open connection may be noticed before the timer that ends the window.
      // So the time is checked here too.
      if (clock.monotonic() > moment.lateAt) takeBack();
      else if (ended?.aborted) late.abort(new NotMade());
    }
    return !late.signal.aborted && !signal.aborted;
  };
  const either = AbortSignal.any([signal, late.signal]);
  try {
    return await make({
      signal: either,
      due: (aheadMs = 0) => waitUntil(clock, moment.startAt - aheadMs, either),
      mayLeave,
      onUnseen() {
        isUnseen = true;
      },
      onStarting() {
        // From here on the request cannot be taken back: a repetition would be a second request.
        if (mayLeave()) left.abort(OVER);
      },
      onStarted() {
        left.abort(OVER);
        requests += 1;
        const lateMs = Math.max(0, clock.monotonic() - moment.lateAt + TURN_LATE_MS);
        known = onLeft?.({ again: requests > 1, lateMs: Math.ceil(lateMs) });
      },
      async oneMore() {
        // The site must have recorded the first request. Otherwise it would take this call for a repeated question
        // about the first one.
        await known?.catch(() => {});
        const begun = await beginTurn(turn, { call, clock, signal, places: NO_PLACES });
        if (begun.state === "gone" || !begun.verdicts.every(({ allowed }) => allowed)) return false;
        left = new AbortController();
        moment = { ...begun.moment };
        keep();
        return mayLeave();
      },
    });
  } finally {
    left.abort(OVER);
  }

  function keep(): void {
    const { signal: hasLeft } = left;
    void keepMoment(turn, { call, clock, left: hasLeft }, moment).then(() => {
      if (!hasLeft.aborted) takeBack();
    });
  }
}

/**
 * Waits for the start time, then marks the request as leaving. The caller must have an open connection and send the
 * request at once. Rejects if the request must not leave.
 */
export async function start({ due, onStarting, signal }: Departure): Promise<void> {
  await due();
  onStarting();
  signal.throwIfAborted();
}

/**
 * Returns a departure without a time window: the request may leave at any time until the turn is no longer wanted.
 */
export function atAnyTime({ signal, ended }: Pick<DepartureParts, "signal" | "ended">): Departure {
  const mayLeave = () => !signal.aborted && !ended?.aborted;
  return {
    ...{ signal, mayLeave, due: async () => signal.throwIfAborted() },
    oneMore: async () => mayLeave(),
    ...{ onUnseen() {}, onStarting() {}, onStarted() {} },
  };
}

/** Extends the time window by asking the site again. Resolves when the window has passed or the request has left. */
async function keepMoment(
  { host, ...asked }: TurnToBegin,
  { call, clock, left }: Pick<BeginParts, "call" | "clock"> & { left: AbortSignal },
  moment: Moment,
): Promise<void> {
  for (;;) {
    await clock.wait(Math.max(0, moment.lateAt - TURN_AGAIN_MS - clock.monotonic()), left);
    if (left.aborted) return;
    const askedAt = clock.monotonic();
    const answer = await Promise.race([
      // Without a reply the moment passes.
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

/** How one request of a turn leaves: within the moment its site has set, or not at all. */
import { TURN_LATE_MS } from "../../../../schemas/crawl/limits.ts";
import { site } from "../../../../schemas/crawl/site.ts";
import { OVER } from "../../../runtime/clock.ts";
import {
  type BeginParts,
  beginTurn,
  type Moment,
  type TurnToBegin,
  waitUntil,
} from "./begin-turn.ts";

/** While a request connects, its moment is asked for again so long before it has passed: a call's way on a busy machine. */
const TURN_AGAIN_MS = 500;

/** The request did not leave in time: its moment has passed, and it needs another. */
export class TooLate extends Error {}

/** The request was not made, or nobody knows whether it was: the turn ends without a word of it, and the job goes on. */
export class NotMade extends Error {}

/** What whoever makes a request keeps to, and tells. */
export interface Departure {
  /** Aborted, with TooLate or NotMade among other reasons, when the request must not leave any more. */
  signal: AbortSignal;
  /**
   * Resolves when its moment has come, or is so near: it does not leave before. To be awaited with a connection at hand.
   * Rejects with the signal's reason.
   */
  due(aheadMs?: number): Promise<void>;
  /** Whether it may still leave; `signal` is aborted where not. It changes nothing else. */
  mayLeave(): boolean;
  /** To be called when it may leave from its moment on and nobody sees just when: taken back it may have left all the same. */
  onUnseen(): void;
  /** To be called just before it leaves: `signal` is aborted by then where that is too late. */
  onStarting(): void;
  /** To be called when it has left, and again when one more has. */
  onStarted(): void;
  /** Waits for another moment, for one more request for the same address. False where there is none soon. */
  oneMore(): Promise<boolean>;
}

export interface DepartureParts extends Pick<BeginParts, "call" | "clock" | "signal"> {
  /** Aborted when nothing of the turn is wanted any more. */
  ended?: AbortSignal;
  /** Told of each request that has left; what it returns resolves once the site knows. */
  onLeft?: (left: Left) => Promise<unknown>;
}

export interface Left {
  /** It was not the turn's first. */
  again: boolean;
  /** By how much at most it left after the moment that the site has set for it. */
  lateMs: number;
}

/** Whoever makes the request has its place already. */
const NO_PLACES = { take: async () => () => {} };

/**
 * Makes the one request of a turn that has begun, which leaves in its moment. One that takes long to connect is told
 * to go again and again, and goes on for as long as it is told so without a wait. Rejects with TooLate or NotMade.
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
      // A process that stood still finds its connection before it finds that the time is over.
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
        // From here on it cannot be taken back: one that is made anew would be a second one.
        if (mayLeave()) left.abort(OVER);
      },
      onStarted() {
        left.abort(OVER);
        requests += 1;
        const lateMs = Math.max(0, clock.monotonic() - moment.lateAt + TURN_LATE_MS);
        known = onLeft?.({ again: requests > 1, lateMs: Math.ceil(lateMs) });
      },
      async oneMore() {
        // Asked before it knows, the site would take it for the same request still.
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

/** With a connection at hand: resolves just as the request is to leave, and not where it must not. */
export async function start({ due, onStarting, signal }: Departure): Promise<void> {
  await due();
  onStarting();
  signal.throwIfAborted();
}

/** Where the site has set no moment: until nothing of the turn is wanted any more. */
export function atAnyTime({ signal, ended }: Pick<DepartureParts, "signal" | "ended">): Departure {
  const mayLeave = () => !signal.aborted && !ended?.aborted;
  return {
    ...{ signal, mayLeave, due: async () => signal.throwIfAborted() },
    oneMore: async () => mayLeave(),
    ...{ onUnseen() {}, onStarting() {}, onStarted() {} },
  };
}

/** Resolves when the moment has passed, or the request has left. */
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

/** Asks a site for the moment at which a turn's request may leave, and waits for it. */
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
  { host, turn, urls, intent }: TurnToBegin,
  { call, clock, signal, places }: BeginParts,
): Promise<Begun> {
  let release: (() => void) | undefined;
  try {
    for (;;) {
      signal.throwIfAborted();
      const askedAt = clock.monotonic();
      const answer = await call(site, host, "begin", { turn, urls, intent });
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

/** Timers may fire a little early; a request never does. */
async function waitUntil(clock: Clock, at: number, signal: AbortSignal): Promise<void> {
  for (let ms = at - clock.monotonic(); ms > 0; ms = at - clock.monotonic()) {
    await clock.wait(Math.ceil(ms), signal);
    signal.throwIfAborted();
  }
}

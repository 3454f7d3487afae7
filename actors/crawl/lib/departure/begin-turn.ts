/** Asks a site for the moment at which a turn's request may leave, and waits until that is near. */
import { TURN_LATE_MS } from "../../../../schemas/crawl/limits.ts";
import { type CrawlIntent, type PageVerdict, site } from "../../../../schemas/crawl/site.ts";
import type { ActorClient, CallOptions } from "../../../runtime/actor-client.ts";
import { type Clock, OVER } from "../../../runtime/clock.ts";
import type { Places } from "../../../runtime/places.ts";

/** A place that others could use is not held through a longer wait than this. */
const TURN_HELD_WAIT_MS = 250;
/** So long before its moment a request has its place and begins to connect: TCP and TLS with a host 100 ms away. */
export const TURN_AHEAD_MS = 200;

export interface TurnToBegin {
  host: string;
  turn: string;
  /** Which of its requests, where they have moments one after the other; the first is 0. */
  nth?: number;
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
  places: Pick<Places, "take">;
}

/** Of one request, by the monotonic clock: it leaves in between, or not at all. */
export interface Moment {
  /** The site's own moment, or later by what of an answer's way cannot be told from it. */
  startAt: number;
  /** TURN_LATE_MS after the site's own moment, or earlier by as much. */
  lateAt: number;
}

export type Begun =
  /** The turn is the site's no more; somebody else will be given one. */
  | { state: "gone" }
  | {
      state: "now";
      atOnce: number;
      /** The moment is the first allowed request's alone. */
      spaced: boolean;
      verdicts: readonly PageVerdict[];
      /** It may be TURN_AHEAD_MS off: so long before it the first request may begin to connect. */
      moment: Moment;
      /** Gives the first request's place back. */
      release(): void;
    };

/** What the site says, by this worker's clock. */
type Heard =
  | { state: "gone" }
  | { state: "wait"; until: number }
  | {
      state: "go";
      moment: Moment;
      atOnce: number;
      spaced: boolean;
      verdicts: readonly PageVerdict[];
    };
type Go = Extract<Heard, { state: "go" }>;

export async function beginTurn(turn: TurnToBegin, parts: BeginParts): Promise<Begun> {
  const { clock, signal, places } = parts;
  let release: (() => void) | undefined;
  let told: Go | undefined;
  try {
    for (;;) {
      signal.throwIfAborted();
      const heard = await (told ? askAgain(turn, parts, told) : ask(turn, parts));
      if (heard.state === "gone") return heard;
      const until = heard.state === "wait" ? heard.until : heard.moment.startAt;
      if (until - clock.monotonic() > TURN_HELD_WAIT_MS) {
        release?.();
        release = undefined;
      }
      if (heard.state === "wait") {
        told = undefined;
        await waitUntil(clock, until, signal);
        continue;
      }
      const { moment, atOnce, spaced, verdicts } = heard;
      await waitUntil(clock, until - TURN_AHEAD_MS, signal);
      // An answer waits for what the site has to store first. Now, with the request before long gone, that is little.
      if (!told && until - clock.monotonic() > TURN_AHEAD_MS / 2) {
        told = heard;
        continue;
      }
      const idle = verdicts.every(({ allowed }) => !allowed);
      if (idle) return { state: "now", atOnce, spaced, verdicts, moment, release() {} };
      release ??= await places.take(signal);
      if (clock.monotonic() > moment.lateAt) {
        told = undefined;
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
): Promise<Heard> {
  const askedAt = clock.monotonic();
  const answer = await call(site, host, "begin", asked, options);
  // A process may be held up between any two of these, by many milliseconds where others want its processor.
  const before = clock.monotonic();
  const epochNow = clock.now();
  const now = clock.monotonic();
  if (answer.state === "gone") return { state: "gone" };
  if (answer.state === "wait") return { state: "wait", until: now + answer.askAgainInMs };
  const { waitMs, atOnce, spaced = false, verdicts, told } = answer;
  // When it was answered is not known, but that it was between the two. By the same clock nothing of its way is unknown.
  const isOurs = told !== undefined && told.clock === clock.id;
  const agoMs = isOurs ? epochNow - told.at : 0;
  const startAt = now - agoMs + waitMs;
  const lateAt = (isOurs ? before - agoMs : askedAt) + waitMs + TURN_LATE_MS;
  return { state: "go", moment: { startAt, lateAt }, atOnce, spaced, verdicts };
}

/** What was told holds where the site says nothing more until then: it may be with a host that has died. */
async function askAgain(turn: TurnToBegin, parts: BeginParts, told: Go): Promise<Heard> {
  const { clock, signal } = parts;
  const over = new AbortController();
  const options = { signal: AbortSignal.any([signal, over.signal]) };
  try {
    const heard = await Promise.race([
      ask(turn, parts, options),
      waitUntil(clock, told.moment.startAt, options.signal).then(() => told),
    ]);
    if (heard === told || heard.state !== "go") return heard;
    return { ...heard, moment: narrowed(told.moment, heard.moment) };
  } finally {
    over.abort(OVER);
  }
}

/** What two answers together say of one moment; where they cannot mean the same, the later one. */
function narrowed(before: Moment, after: Moment): Moment {
  const isMoved =
    after.startAt < before.lateAt - TURN_LATE_MS || after.lateAt - TURN_LATE_MS > before.startAt;
  if (isMoved) return after;
  return {
    startAt: Math.min(before.startAt, after.startAt),
    lateAt: Math.max(before.lateAt, after.lateAt),
  };
}

/** Timers may fire a little early; a request never does. */
export async function waitUntil(clock: Clock, at: number, signal: AbortSignal): Promise<void> {
  for (let ms = at - clock.monotonic(); ms > 0; ms = at - clock.monotonic()) {
    await clock.wait(Math.ceil(ms), signal);
    signal.throwIfAborted();
  }
}

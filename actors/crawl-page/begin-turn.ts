/** Asks a site for the moment at which a turn's request may leave, and waits until that is near. */
import {
  ARRIVAL_MS,
  TURN_AHEAD_MS,
  TURN_FOLLOW_LATE_MS,
  TURN_HELD_WAIT_MS,
  TURN_LATE_MS,
} from "../../schemas/crawl-limits.ts";
import { type CrawlIntent, type Follow, type PageVerdict, site } from "../../schemas/site.ts";
import type { ActorClient, CallOptions } from "../runtime/actor-client.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Places } from "../runtime/places.ts";
import type { Departures } from "./departures.ts";

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
  places: Pick<Places, "take">;
  /** Where requests may leave though nobody answers for the site. */
  departures?: Pick<Departures, "hasLeft" | "isAway">;
}

/** Of one request, by the monotonic clock: it leaves in between, or not at all. */
export interface Moment {
  /** The site's own moment, or later by what of an answer's way cannot be told from it. */
  startAt: number;
  /** TURN_LATE_MS after the site's own moment, or earlier by as much. */
  lateAt: number;
  /** The turn's place, where others follow. */
  place?: number;
}

export type Begun =
  /** The turn is the site's no more; somebody else will be given one. */
  | { state: "gone" }
  | {
      state: "now";
      atOnce: number;
      verdicts: readonly PageVerdict[];
      /** It may be TURN_AHEAD_MS off: so long before it the first request may begin to connect. */
      moment: Moment;
      /** Gives the first request's place back. */
      release(): void;
    };

/** What the site says, by this worker's clock. */
type Heard =
  | { state: "gone" }
  | { state: "wait"; until: number; follow?: Follow | undefined; verdicts?: Verdicts | undefined }
  | { state: "go"; moment: Moment; atOnce: number; verdicts: readonly PageVerdict[] };
type Go = Extract<Heard, { state: "go" }>;
type Verdicts = readonly PageVerdict[];

export async function beginTurn(turn: TurnToBegin, parts: BeginParts): Promise<Begun> {
  const { clock, signal, places } = parts;
  let release: (() => void) | undefined;
  let told: Go | undefined;
  let follow: Follow | undefined;
  let judged: Verdicts | undefined;
  try {
    for (;;) {
      signal.throwIfAborted();
      const heard = await (told
        ? askAgain(turn, parts, told)
        : follow && judged && parts.departures
          ? askOrFollow(turn, { ...parts, departures: parts.departures }, follow, judged)
          : ask(turn, parts));
      if (heard.state === "gone") return heard;
      const until = heard.state === "wait" ? heard.until : heard.moment.startAt;
      if (until - clock.monotonic() > TURN_HELD_WAIT_MS) {
        release?.();
        release = undefined;
      }
      if (heard.state === "wait") {
        told = undefined;
        follow = heard.follow;
        judged = heard.verdicts ?? judged;
        await waitUntil(clock, until, signal);
        continue;
      }
      const { moment, atOnce, verdicts } = heard;
      await waitUntil(clock, until - TURN_AHEAD_MS, signal);
      // An answer waits for what the site has to store first. Now, with the request before long gone, that is little.
      if (!told && until - clock.monotonic() > TURN_AHEAD_MS / 2) {
        told = heard;
        continue;
      }
      const idle = verdicts.every(({ allowed }) => !allowed);
      if (idle) return { state: "now", atOnce, verdicts, moment, release() {} };
      release ??= await places.take(signal);
      if (clock.monotonic() > moment.lateAt) {
        told = undefined;
        continue;
      }
      const held = release;
      release = undefined;
      return { state: "now", atOnce, verdicts, moment, release: held };
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
  // When it was answered is not known, but that it was between the two.
  const now = clock.monotonic();
  if (answer.state === "gone") return { state: "gone" };
  if (answer.state === "wait") {
    const { follow, verdicts } = answer;
    return { state: "wait", until: now + answer.askAgainInMs, follow, verdicts };
  }
  const { waitMs, atOnce, verdicts, place } = answer;
  const told = { startAt: now + waitMs, lateAt: askedAt + waitMs + TURN_LATE_MS };
  const moment = { ...told, ...(place !== undefined && { place }) };
  return { state: "go", moment, atOnce, verdicts };
}

/** What was told holds where the site says nothing more until then: it may be with a host that has died. */
async function askAgain(turn: TurnToBegin, parts: BeginParts, told: Go): Promise<Heard> {
  const heard = await askOr(turn, parts, async (signal) => {
    await waitUntil(parts.clock, told.moment.startAt, signal);
    return told;
  });
  if (heard === told || heard.state !== "go") return heard;
  return { ...heard, moment: narrowed(told.moment, heard.moment) };
}

/** Where the site does not answer the turn goes as it was told to: behind the one that it follows. */
function askOrFollow(
  turn: TurnToBegin,
  parts: BeginParts & Required<Pick<BeginParts, "departures">>,
  { place, after, delayMs }: Follow,
  verdicts: Verdicts,
): Promise<Heard> {
  return askOr(turn, parts, async (signal) => {
    const leftAt = await parts.departures.hasLeft(after, signal);
    // As the site counts it: on its way it may have been so long.
    const startAt = leftAt + delayMs + ARRIVAL_MS;
    const moment = { startAt, lateAt: leftAt + delayMs + TURN_FOLLOW_LATE_MS, place };
    return { state: "go", moment, atOnce: 1, verdicts };
  });
}

/** The site's answer, or what holds without one once that is there. Of a host that is to be left alone only the site knows. */
async function askOr(
  turn: TurnToBegin,
  parts: BeginParts,
  otherwise: (signal: AbortSignal) => Promise<Heard>,
): Promise<Heard> {
  const over = new AbortController();
  const signal = AbortSignal.any([parts.signal, over.signal]);
  const asked = ask(turn, parts, { signal });
  try {
    const heard = await Promise.race([asked, otherwise(signal)]);
    return heard.state === "go" && parts.departures?.isAway(turn.host) ? await asked : heard;
  } finally {
    over.abort();
  }
}

/** What two answers together say of one moment; where they cannot mean the same, the later one. */
function narrowed(before: Moment, after: Moment): Moment {
  const isMoved =
    after.startAt < before.lateAt - TURN_LATE_MS || after.lateAt - TURN_LATE_MS > before.startAt;
  if (isMoved) return after;
  return {
    ...after,
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

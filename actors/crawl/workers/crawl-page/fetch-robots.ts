/** Fetches a site's robots.txt in turns of the site itself, and reports the result to the site. */
import { randomBytes } from "node:crypto";
import { type Envelope, envelope } from "../../../../schemas/contract.ts";
import {
  HOST_AWAY_MS,
  ROBOTS_AWAY_MS_MAX,
  ROBOTS_BYTES_MAX,
  ROBOTS_LOOKUP_WAIT_MS,
  ROBOTS_LOOKUP_WAIT_MS_MAX,
  ROBOTS_REDIRECTS_MAX,
  ROBOTS_TRIES_MAX,
} from "../../../../schemas/crawl/limits.ts";
import {
  type RobotsOutcome,
  type RobotsProgress,
  type Scheme,
  site,
} from "../../../../schemas/crawl/site.ts";
import { ActorError } from "../../../../schemas/errors.ts";
import { isSuccessful } from "../../../../schemas/status-classes.ts";
import { EgressError, NoLookupSlotError } from "../../../egress/egress-error.ts";
import { EgressAgents, egressFetch } from "../../../egress/egress-fetch.ts";
import type { EgressGuard } from "../../../egress/egress-guard.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";
import type { FairSemaphore } from "../../../runtime/lib/fair-semaphore.ts";
import type { TaskContext } from "../../../runtime/workers/define-worker.ts";
import { type Begun, beginTurn, type TurnToBegin } from "../../lib/departure/begin-turn.ts";
import {
  type Departure,
  inTime,
  type Left,
  start,
  TooLate,
} from "../../lib/departure/departure.ts";
import { FetchDeadline } from "../../lib/load/fetch-deadline.ts";
import { isPassing, isPassingStatus } from "../../lib/load/passing-faults.ts";
import { redirectTarget } from "../../lib/load/redirect-target.ts";
import { awayMsOf } from "../../lib/load/retry-after.ts";
import { CRAWLER_USER_AGENT, PRODUCT_TOKEN } from "../../lib/load/user-agent.ts";
import { robotsOutcomeOf } from "../../lib/robots/robots-outcome.ts";

/** Timeout of one robots.txt request. No page of the host can be fetched before it, so it may not wait as long as a page. */
export const ROBOTS_FETCH_MS_MAX = 15_000;
/**
 * Latest start of a request after the begin of its turn, so that the turn ends within TURN_MS_MAX. Another turn makes
 * the rest.
 */
export const ROBOTS_STARTS_MS_MAX = 120_000;

export interface RobotsFetchParts {
  guard: EgressGuard;
  clock: Clock;
  places: FairSemaphore;
  ca?: string | undefined;
  fetchMs?: number;
}

export interface RobotsTask {
  host: string;
  scheme: Scheme;
  turn: string;
  account?: string | undefined;
  from?: RobotsProgress | undefined;
}

export type RobotsContext = Pick<TaskContext, "signal" | "call" | "send">;

/** The result of one request. */
type End = { kind: "end"; outcome: RobotsOutcome; retry: boolean; awayMs?: number | undefined };
type Answer =
  /** The start time is too far in the future, or the turn has ended. */
  | { kind: "gone" }
  /** The lookup of the host's name could not start, so no request was sent. */
  | { kind: "not_looked_up" }
  | { kind: "redirect"; to: string | undefined }
  | End;

/** Runs the fetch. Returns the messages for its result, or for its progress if another turn continues. */
export async function fetchRobots(
  parts: RobotsFetchParts,
  task: RobotsTask,
  context: RobotsContext,
): Promise<Envelope[]> {
  using agents = new EgressAgents({
    guard: parts.guard,
    idleMax: 1 + ROBOTS_REDIRECTS_MAX,
    ...(parts.ca !== undefined && { ca: parts.ca }),
  });
  // `await` is needed here: without it `using` would close the agents before the fetch ends.
  return await new RobotsFetch(parts, task, context, agents).run();
}

class RobotsFetch {
  readonly #parts: RobotsFetchParts;
  readonly #task: RobotsTask;
  readonly #context: RobotsContext;
  readonly #agents: EgressAgents;
  readonly #by = randomBytes(16).toString("hex");
  readonly #lastStartAt: number;
  /**
   * The account for which lookups and requests count. Without an account, the task comes from an earlier version. All
   * such tasks have one owner.
   */
  readonly #owner: string;

  constructor(
    parts: RobotsFetchParts,
    task: RobotsTask,
    context: RobotsContext,
    agents: EgressAgents,
  ) {
    this.#parts = parts;
    this.#task = task;
    this.#context = context;
    this.#agents = agents;
    this.#owner = task.account ?? "robots";
    this.#lastStartAt = parts.clock.monotonic() + ROBOTS_STARTS_MS_MAX;
  }

  /**
   * Follows redirects, also across authorities (RFC 9309, section 2.3.1.2). Each attempt begins at the first address.
   */
  async run(): Promise<Envelope[]> {
    const { host, scheme, turn, from } = this.#task;
    const first = `${scheme}://${host}/robots.txt`;
    let next: RobotsProgress = from ?? { url: first, hops: 0, attempt: 1 };
    for (;;) {
      const { hops, attempt } = next;
      const answer = await this.#visit(next.url);
      if (answer.kind === "gone") {
        return [envelope(site, host, "robotsPaused", { scheme, turn, next })];
      }
      if (answer.kind === "not_looked_up") {
        // Lookups of other crawls hold the slots. That is no fault of this host, so no attempt is used up.
        const waits = (next.waits ?? 0) + 1;
        const longMs = ROBOTS_LOOKUP_WAIT_MS * 2 ** (waits - 1);
        const waitMs = Math.min(longMs, ROBOTS_LOOKUP_WAIT_MS_MAX);
        const paused = { scheme, turn, next: { ...next, waits }, waitMs };
        return [envelope(site, host, "robotsPaused", paused)];
      }
      if (answer.kind === "redirect" && answer.to !== undefined && hops < ROBOTS_REDIRECTS_MAX) {
        next = { url: answer.to, hops: hops + 1, attempt };
        continue;
      }
      const { outcome, retry, awayMs } = answer.kind === "end" ? answer : redirectedAway(first);
      // Only a pause of this site's own host is reported here. If a redirect led to another host, `#visit` has
      // reported the pause to the site of that host.
      const isOurs = new URL(next.url).host === host;
      const finished = turnFinished(host, turn, isOurs ? awayMs : undefined);
      if (retry && attempt < ROBOTS_TRIES_MAX) {
        next = { url: first, hops: 0, attempt: attempt + 1 };
        if (awayMs === undefined) continue;
        if (awayMs <= ROBOTS_AWAY_MS_MAX) {
          const wait = isOurs ? {} : { waitMs: Math.max(awayMs, HOST_AWAY_MS) };
          return [finished, envelope(site, host, "robotsPaused", { scheme, turn, next, ...wait })];
        }
      }
      return [envelope(site, host, "robotsFetched", { scheme, turn, outcome }), finished];
    }
  }

  /**
   * Makes one request. Its start time comes from the site of the address, which may be another site than the task's.
   */
  async #visit(url: string): Promise<Answer> {
    const { call, send } = this.#context;
    const { host } = new URL(url);
    if (host === this.#task.host) return this.#ask(url, host, this.#task.turn);
    const turn = randomBytes(16).toString("hex");
    await call(site, host, "visit", { turn });
    let awayMs: number | undefined;
    try {
      const answer = await this.#ask(url, host, turn);
      if (answer.kind === "end") awayMs = answer.awayMs;
      if (answer.kind !== "gone" || this.#restMs() <= 0) return answer;
      // The site of the redirect's host grants no start time in time, so that host counts as unreachable.
      const because = "its redirect's host is busy";
      return { kind: "end", outcome: { kind: "disallow_all", because }, retry: true };
    } finally {
      await send([turnFinished(host, turn, awayMs)]);
    }
  }

  #restMs(): number {
    return this.#lastStartAt - this.#parts.clock.monotonic();
  }

  /**
   * Waits for the start time of the turn. Returns `gone` if the start time is later than this task may start
   * requests.
   */
  async #begin(asked: TurnToBegin): Promise<Begun> {
    const { clock } = this.#parts;
    const { call, signal } = this.#context;
    const places = this.#parts.places.of(this.#owner);
    if (this.#restMs() <= 0) return { state: "gone" };
    using late = new Timer(clock, this.#restMs());
    const either = AbortSignal.any([signal, late.signal]);
    try {
      return await beginTurn(asked, { call, clock, signal: either, places });
    } catch (error) {
      signal.throwIfAborted();
      if (late.signal.aborted) return { state: "gone" };
      throw error;
    }
  }

  async #ask(url: string, host: string, turn: string): Promise<Answer> {
    const { clock } = this.#parts;
    const { call, signal } = this.#context;
    const input = { host, turn, urls: [url], intent: ANY_INTENT, by: this.#by };
    for (;;) {
      const begun = await this.#begin(input);
      if (begun.state === "gone") return { kind: "gone" };
      let startReported: Promise<unknown> = Promise.resolve();
      const reportLeft = ({ lateMs }: Left) => {
        startReported = call(site, host, "requestStarted", { turn, lateMs }).catch(
          (error: unknown) => {
            // If this report is lost, the site counts the delay from the end of the turn.
            if (!(error instanceof ActorError)) throw error;
          },
        );
        return startReported;
      };
      try {
        const parts = { call, clock, signal, onLeft: reportLeft };
        return await inTime(input, parts, begun.moment, (departure) =>
          this.#request(url, departure),
        );
      } catch (error) {
        if (!(error instanceof TooLate)) throw error;
      } finally {
        begun.release();
        await startReported;
      }
    }
  }

  async #request(url: string, departure: Departure): Promise<Answer> {
    const { clock, fetchMs = ROBOTS_FETCH_MS_MAX } = this.#parts;
    const { signal, onStarted, oneMore } = departure;
    const deadline = new FetchDeadline(signal, fetchMs, clock);
    try {
      const { status, headers, body } = await egressFetch(url, {
        agents: this.#agents,
        lookupOwner: this.#owner,
        signal: deadline.signal,
        headers: { "user-agent": CRAWLER_USER_AGENT, accept: "text/plain,*/*;q=0.8" },
        bytesMax: Number.POSITIVE_INFINITY,
        redirectsMax: 0,
        onSending: () => start(departure),
        onSent: onStarted,
        oneMore: () => deadline.pauseFor(oneMore()),
      });
      try {
        const target = redirectTarget(url, status, headers);
        if (target !== undefined) return { kind: "redirect", to: target.url };
        const reader = { productToken: PRODUCT_TOKEN, url };
        const isFile = isSuccessful(status);
        const bytes = isFile ? await beginningOf(body) : new Uint8Array();
        return {
          kind: "end",
          outcome: robotsOutcomeOf({ kind: "answered", status, body: bytes }, reader),
          retry: isPassingStatus(status),
          awayMs: awayMsOf(status, headers.get("retry-after"), clock.now()),
        };
      } finally {
        body.destroy();
      }
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof NoLookupSlotError) return { kind: "not_looked_up" };
      if (deadline.passed) return this.#noAnswer(url, `it took longer than ${fetchMs} ms`, true);
      if (error instanceof EgressError) {
        return this.#noAnswer(url, error.message, isPassing(error));
      }
      throw error;
    } finally {
      deadline.clear();
    }
  }

  #noAnswer(url: string, because: string, retry: boolean): End {
    // If the failed request went to another host, the task's own host has responded with a redirect, so it is not
    // unreachable.
    const unreachable = new URL(url).host === this.#task.host;
    const outcome = { kind: "disallow_all", because } as const;
    return { kind: "end", outcome: unreachable ? { ...outcome, unreachable } : outcome, retry };
  }
}

function turnFinished(host: string, turn: string, awayMs: number | undefined): Envelope {
  return envelope(site, host, "turnFinished", { turn, ...(awayMs !== undefined && { awayMs }) });
}

/** Aborts its signal at the timeout. */
class Timer {
  readonly #controller = new AbortController();
  readonly #done = new AbortController();

  constructor(clock: Clock, ms: number) {
    void clock.wait(Math.max(0, ms), this.#done.signal).then(() => {
      if (!this.#done.signal.aborted) this.#controller.abort();
    });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  [Symbol.dispose](): void {
    this.#done.abort();
  }
}

/** Placeholder for the intent of a call: the site does not judge the address of a robots.txt. */
const ANY_INTENT = { purposes: ["search" as const] };

function redirectedAway(url: string): End {
  const outcome = robotsOutcomeOf(
    { kind: "redirected_away" },
    { productToken: PRODUCT_TOKEN, url },
  );
  return { kind: "end", outcome, retry: false };
}

/** Reads one more byte than the parser takes, so that the parser sees that there is more. */
async function beginningOf(body: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > ROBOTS_BYTES_MAX) break;
  }
  return Buffer.concat(chunks).subarray(0, ROBOTS_BYTES_MAX + 1);
}

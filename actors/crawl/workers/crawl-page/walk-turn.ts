/** Runs a turn: makes its requests when the site allows them, and reports each outcome to the job. */
import { randomBytes } from "node:crypto";
import type { Envelope } from "../../../../schemas/contract.ts";
import type { Turn, TurnRequest } from "../../../../schemas/crawl/crawl-page.ts";
import { type PageVerdict, site } from "../../../../schemas/crawl/site.ts";
import type { FairSemaphore } from "../../../runtime/lib/fair-semaphore.ts";
import type { Semaphore } from "../../../runtime/lib/semaphore.ts";
import type { TaskContext } from "../../../runtime/workers/define-worker.ts";
import { type Begun, beginTurn, type TurnToBegin } from "../../lib/departure/begin-turn.ts";
import { NotMade, TooLate } from "../../lib/departure/departure.ts";
import { cachedPages, isPage } from "../../lib/records/cached-pages.ts";
import type { HeldJobs } from "../../lib/records/held-jobs.ts";
import { type CacheStore, PageCache } from "../../lib/records/page-cache.ts";
import { PageOutcomes, type PageOutcomesParts } from "../../lib/records/page-outcomes.ts";
import { BrowserTime, type OutOfTime, type UnreportedTime } from "./browser-time.ts";
import { TurnMail } from "./turn-mail.ts";
import { turnFinished, turnLost } from "./turn-messages.ts";
import { TurnRequests, type TurnsJob, type TurnsWorker } from "./turn-requests.ts";

/**
 * Latest start of a request after the begin of its turn, so that the turn ends within TURN_MS_MAX. The job gives the
 * rest to another turn.
 */
export const TURN_STARTS_MS_MAX = 60_000;

export interface TurnWalkParts extends Omit<PageOutcomesParts, "cache">, TurnsWorker {
  jobs: HeldJobs;
  cache: CacheStore;
  /** Places for pages. Each account has a share. */
  places: FairSemaphore;
  /** Checks the account's browser time. Missing if pages are loaded by HTTP, which takes no browser time. */
  outOfTime?: OutOfTime;
  unreported: UnreportedTime;
}

/** The parts of a task's context that a turn uses. */
type TurnContext = Pick<TaskContext, "signal" | "lapsed" | "isSure" | "call" | "send" | "tell">;

interface WalkedTurn {
  /**
   * Messages that were not sent because the task had been taken from this worker, and the report of used browser
   * time. The caller must send them.
   */
  unsent: Envelope[];
  /** The job has received every outcome and removed the turn. */
  isReported: boolean;
  /** A fault of this platform that prevented a report. */
  failure?: { error: unknown };
}

/**
 * Resolves when all work of the turn is done. The caller must send what is unsent, and `turnEnded` if the turn is not
 * reported.
 */
export async function walkTurn(
  parts: TurnWalkParts,
  turn: Turn,
  context: TurnContext,
): Promise<WalkedTurn> {
  const held = await parts.jobs.hold(turn);
  try {
    const ended = await held.ended();
    // `lapsed` aborts when another worker may get this task. From then on this worker starts no requests, so that
    // both workers together do not exceed the host's limit.
    const signal = AbortSignal.any([context.signal, context.lapsed]);
    return await new TurnWalk(parts, turn, { ...context, signal }, { ...held, ended }).run();
  } finally {
    held.release();
  }
}

type Now = Extract<Begun, { state: "now" }>;

class TurnWalk {
  readonly #parts: TurnWalkParts;
  readonly #turn: Turn;
  readonly #context: TurnContext;
  readonly #held: TurnsJob;
  readonly #asking: Omit<TurnToBegin, "urls">;
  /** The places of the turn's account. */
  readonly #places: Pick<Semaphore, "take">;
  readonly #mail: TurnMail;
  readonly #outcomes: PageOutcomes;
  readonly #browserTime: BrowserTime;
  readonly #requests: TurnRequests;
  /**
   * `#underWay` holds the requests that have left and continue while the next ones start. `#stopped` is the first
   * fault of this platform in one of them.
   */
  readonly #underWay: Promise<void>[] = [];
  #stopped: { error: unknown } | undefined;
  /** Number of requests with a time window whose end is not reported to the site yet. */
  #unfinished = 0;
  /**
   * All requests of the turn were made within their time windows, so the turn ends at the site with the last of them.
   */
  #isMade = false;
  /**
   * Pause that a request has reported to the site without a confirmation. It is reported again with the end of the
   * turn.
   */
  #unreportedAwayMs: number | undefined;
  #isSpaced = false;
  #isLost = false;
  #isOutOfTime = false;

  constructor(parts: TurnWalkParts, turn: Turn, context: TurnContext, held: TurnsJob) {
    this.#parts = parts;
    this.#turn = turn;
    this.#context = context;
    this.#held = held;
    const { crawlPurposes: purposes, contentUse } = held.request;
    const intent = { purposes, ...(contentUse !== undefined && { contentUse }) };
    const by = randomBytes(16).toString("hex");
    this.#places = parts.places.of(turn.account);
    this.#asking = { host: turn.host, turn: turn.turn, intent, by };
    const { signal, send, tell, call } = context;
    const { clock, outOfTime, unreported } = parts;
    this.#mail = new TurnMail({ turn, signal, send, tell, clock });
    const cache = new PageCache(parts.cache, turn.account, held.request);
    this.#outcomes = new PageOutcomes({ ...parts, cache }, turn, held.request);
    this.#browserTime = new BrowserTime({ turn, call, outOfTime, unreported });
    this.#requests = new TurnRequests({
      ...{ worker: parts, turn, asking: this.#asking, context, held },
      ...{ mail: this.#mail, outcomes: this.#outcomes, browserTime: this.#browserTime },
    });
  }

  async run(): Promise<WalkedTurn> {
    try {
      const wanted = await this.#withoutCached();
      if (wanted.length > 0) await this.#make(wanted);
    } catch (error) {
      // If the task was taken from this worker, the turn ends normally: finished requests are reported, and the job
      // requeues the others. If the job has ended, its pages are no longer needed. Neither is a fault.
      const isUnwanted = this.#context.signal.aborted || this.#held.ended.aborted;
      if (!isUnwanted) this.#mail.fail(error);
    }
    // The turn ends at the site before the records are built, so that the next turn at this host need not wait for
    // them.
    if (!this.#isMade || this.#unfinished > 0) {
      await this.#mail.notify(this.#ending()).catch(this.#mail.fail);
    }
    await this.#mail.end();
    const { unsent, failure, reported } = this.#mail;
    const isReported = unsent.length === 0 && reported === this.#turn.requests.length;
    const walked = { isReported, unsent: [...unsent, ...this.#browserTime.end()] };
    return failure ? { ...walked, failure } : walked;
  }

  /**
   * Reports the pages that the cache holds, as refused if robots.txt forbids them now. Returns the remaining
   * requests.
   */
  async #withoutCached(): Promise<readonly TurnRequest[]> {
    const { requests } = this.#turn;
    const { signal, call } = this.#context;
    const { host, intent } = this.#asking;
    if (this.#held.request.maxAge === 0) return requests;
    const judge = async (urls: string[]) =>
      (await call(site, host, "judge", { urls, intent })).verdicts;
    const found = await cachedPages(requests, { outcomes: this.#outcomes, judge, signal });
    for (const { request, verdict } of found.refused) this.#mail.refuse(request, verdict);
    for (const outcome of found.used) this.#mail.report(outcome);
    return found.left;
  }

  /** Returns the message that ends the turn at the site. */
  #ending(): Envelope {
    if (this.#isLost) return turnLost(this.#turn);
    const awayMs = this.#isSpaced ? this.#unreportedAwayMs : this.#requests.awayMs;
    return turnFinished(this.#turn, { awayMs });
  }

  /** Makes these requests when the site allows them. The job requeues what is not reported. */
  async #make(requests: readonly TurnRequest[]): Promise<void> {
    try {
      await this.#begin(requests);
    } finally {
      await Promise.all(this.#underWay);
    }
    if (this.#stopped) throw this.#stopped.error;
  }

  /** Begins the requests. Resolves when each of them has begun, or can no longer begin in this turn. */
  async #begin(requests: readonly TurnRequest[]): Promise<void> {
    const { clock } = this.#parts;
    const places = this.#places;
    const { call, signal } = this.#context;
    const either = AbortSignal.any([signal, this.#held.ended]);
    let left = requests;
    let nth = 0;
    while (left.length > 0) {
      const first = left.find(isPage);
      if (first !== undefined && !(await this.#hasTime(first))) return;
      // The first call contains all requests, so the site has judged the later ones already.
      const wanted = nth === 0 ? left : left.slice(0, 1);
      const input = { ...this.#asking, nth, urls: wanted.map(({ url }) => url) };
      const begun = await beginTurn(input, { call, clock, signal: either, places });
      if (begun.state === "gone") {
        // Another worker may hold the turn and may be about to send a request. So the turn is ended as lost.
        this.#isLost = true;
        return;
      }
      try {
        const allowed = this.#allowed(wanted, begun.verdicts);
        left = [...allowed, ...left.slice(wanted.length)];
        const [request, ...others] = left;
        if (request === undefined || allowed.length === 0) return begun.release();
        this.#isSpaced = begun.spaced;
        if (!begun.spaced) return await this.#makeAtOnce(allowed, begun, nth);
        if (!this.#mayGoOn()) return begun.release();
        await this.#makeInItsMoment(request, begun, nth);
        left = others;
        nth += 1;
      } catch (error) {
        if (error instanceof NotMade) return;
        if (!(error instanceof TooLate)) throw error;
      }
    }
    this.#isMade = true;
  }

  /**
   * Makes a request within its time window. Resolves when the request has left and the site has recorded that. Then
   * the next request may begin while this one continues. The end of each request is reported to the site: the host
   * may request a pause, or may be slow with this request only.
   */
  async #makeInItsMoment(
    request: TurnRequest,
    { moment, release }: Now,
    nth: number,
  ): Promise<void> {
    const startBy = this.#parts.clock.monotonic() + TURN_STARTS_MS_MAX;
    const left = Promise.withResolvers<void>();
    let reported: Promise<void> | undefined;
    const onLeft = (report: Promise<void>) => {
      reported ??= report;
      left.resolve();
    };
    this.#unfinished += 1;
    const made = this.#requests.make(request, { moment, nth, startBy, release, onLeft });
    const finished = made.then(async ({ awayMs }) => {
      // If the request has ended without a reported departure, its time window is reported as used.
      reported ??= this.#requests.reportStart(nth);
      await reported;
      const isHeard = await this.#mail.notify(turnFinished(this.#turn, { nth, awayMs }));
      this.#unfinished -= 1;
      if (!isHeard) this.#unreportedAwayMs ??= awayMs;
    });
    this.#underWay.push(
      finished.catch((error: unknown) => {
        // The request has not left. This turn makes it again, or the job requeues it.
        if (reported === undefined) this.#unfinished -= 1;
        // A request that needed another time window and got none has no outcome, and that is no fault. The job
        // requeues it.
        const isKnown =
          reported === undefined || error instanceof TooLate || error instanceof NotMade;
        if (!isKnown) this.#stopped ??= { error };
      }),
    );
    await Promise.race([left.promise, made]);
    await (reported ?? finished);
  }

  /** Returns the allowed requests and reports the refused ones. */
  #allowed(
    requests: readonly TurnRequest[],
    verdicts: readonly PageVerdict[],
  ): readonly TurnRequest[] {
    return requests.filter((request, position) => {
      const verdict = verdicts[position];
      if (verdict?.allowed === true) return true;
      this.#mail.refuse(request, verdict);
      return false;
    });
  }

  /**
   * Makes all requests, at most `atOnce` at the same time. The next request starts only after the outcome of an
   * earlier one was reported. So a worker that dies loses only pages in flight, and only those are fetched twice.
   */
  async #makeAtOnce(requests: readonly TurnRequest[], begun: Now, nth: number): Promise<void> {
    const { clock } = this.#parts;
    const { signal } = this.#context;
    const startBy = clock.monotonic() + TURN_STARTS_MS_MAX;
    const queue = requests.values();
    // A turn of a single request must leave within its time window. For several requests the site has set no windows.
    const moment = requests.length === 1 ? begun.moment : undefined;
    const firsts = [begun.release];
    let stopped: { error: unknown } | undefined;
    const mayStart = () => !stopped && this.#mayGoOn() && clock.monotonic() <= startBy;
    const inTurn = async () => {
      for (const request of queue) {
        if (!mayStart()) return;
        const release = firsts.pop() ?? (await this.#places.take(signal));
        // Other turns may have used up the account's browser time while this turn ran. For a turn of a single request
        // it was checked just before.
        if (moment === undefined) await this.#hasTime(request).catch(releasing(release));
        // The wait for a place may have taken so long that the turn may start no more requests.
        if (!mayStart()) return release();
        const { reported } = await this.#requests.make(request, { moment, nth, startBy, release });
        await reported;
      }
    };
    // A failure stops further requests but is thrown only after the running loads have ended, because the turn ends
    // after its last load.
    const stop = (error: unknown) => {
      stopped ??= { error };
    };
    await Promise.all(Array.from({ length: begun.atOnce }, () => inTurn().catch(stop)));
    for (const release of firsts) release();
    if (stopped) throw stopped.error;
  }

  #mayGoOn(): boolean {
    const hasFailed = this.#stopped || this.#mail.failure || this.#isOutOfTime;
    return (
      !(hasFailed || this.#held.ended.aborted || this.#requests.awayMs !== undefined) &&
      this.#context.isSure()
    );
  }

  /**
   * Returns whether the account has browser time for this page. If not, reports the page as `out_of_time`, and the
   * turn starts no more requests.
   */
  async #hasTime(request: TurnRequest): Promise<boolean> {
    const reason = isPage(request) ? await this.#browserTime.shortage() : undefined;
    if (reason === undefined || !isPage(request)) return true;
    this.#isOutOfTime = true;
    this.#mail.report({ kind: "out_of_time", index: request.index, reason });
    return false;
  }
}

const releasing = (release: () => void) => (error: unknown) => {
  release();
  throw error;
};

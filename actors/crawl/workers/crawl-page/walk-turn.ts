/** What a worker does with a turn: it makes the turn's requests when the site lets it, and tells the job what came of each. */
import { randomBytes } from "node:crypto";
import type { Envelope } from "../../../../schemas/contract.ts";
import type { Turn, TurnRequest } from "../../../../schemas/crawl/crawl-page.ts";
import { type PageVerdict, site } from "../../../../schemas/crawl/site.ts";
import type { TaskContext } from "../../../runtime/define-worker.ts";
import type { Places } from "../../../runtime/places.ts";
import { type Begun, beginTurn, type TurnToBegin } from "../../lib/departure/begin-turn.ts";
import { NotMade, TooLate } from "../../lib/departure/departure.ts";
import { cachedPages, isPage } from "../../lib/records/cached-pages.ts";
import type { JobShelf } from "../../lib/records/job-shelf.ts";
import { type CacheStore, PageCache } from "../../lib/records/page-cache.ts";
import { PageOutcomes, type PageOutcomesParts } from "../../lib/records/page-outcomes.ts";
import { BrowserTime, type OutOfTime, type Untold } from "./browser-time.ts";
import { TurnMail } from "./turn-mail.ts";
import { turnFinished, turnLost } from "./turn-messages.ts";
import { TurnRequests, type TurnsJob, type TurnsWorker } from "./turn-requests.ts";

/** No request of a turn starts later than this after it began: with its longest it is within TURN_MS_MAX. The job gives what is left to another turn. */
export const TURN_STARTS_MS_MAX = 60_000;

export interface TurnWalkParts extends Omit<PageOutcomesParts, "cache">, TurnsWorker {
  jobs: JobShelf;
  cache: CacheStore;
  /** Pages in work. */
  places: Places;
  /** Where loading takes browser time. */
  outOfTime?: OutOfTime;
  untold: Untold;
}

/** What a task may do while it runs. */
type TurnContext = Pick<TaskContext, "signal" | "lapsed" | "isSure" | "call" | "send" | "tell">;

interface WalkedTurn {
  /** The browser time it took, and before it what could not be sent any more, since the task was taken from us. */
  unsent: Envelope[];
  /** The job has heard of all that the turn was for, and has forgotten it. */
  isReported: boolean;
  /** A fault of ours that kept something from the job. */
  failure?: { error: unknown };
}

/** Resolves once nothing of the turn is under way any more; what is unsent, and `turnEnded` of one that is not reported, are still to be sent. */
export async function walkTurn(
  parts: TurnWalkParts,
  turn: Turn,
  context: TurnContext,
): Promise<WalkedTurn> {
  const held = await parts.jobs.hold(turn);
  try {
    const ended = await held.ended();
    // Where another worker may be given the turn, its requests are made by that one: a host has no more than it may.
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
  readonly #mail: TurnMail;
  readonly #outcomes: PageOutcomes;
  readonly #browserTime: BrowserTime;
  readonly #requests: TurnRequests;
  /** Requests that have left, each beside those after it; and the first fault of ours among them. */
  readonly #underWay: Promise<void>[] = [];
  #stopped: { error: unknown } | undefined;
  /** Requests made in their moments of which the site has not heard yet that they are done with. */
  #unfinished = 0;
  /** All were made so: once they are done with nothing of the turn is left to be finished. */
  #isMade = false;
  /** What a host said of such a request, where the site may hear of the turn's end first. */
  #untoldAwayMs: number | undefined;
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
    this.#asking = { host: turn.host, turn: turn.turn, intent, by };
    const { signal, send, tell, call } = context;
    const { clock, outOfTime, untold } = parts;
    this.#mail = new TurnMail({ turn, signal, send, tell, clock });
    const cache = new PageCache(parts.cache, turn.account, held.request);
    this.#outcomes = new PageOutcomes({ ...parts, cache }, turn, held.request);
    this.#browserTime = new BrowserTime({ turn, call, outOfTime, untold });
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
      // A task that is taken from us gives back what it did not make, and reports the rest. Of a job that has ended nobody
      // wants any of it.
      const isOver = this.#context.signal.aborted || this.#held.ended.aborted;
      if (!isOver) this.#mail.fail(error);
    }
    // The next turn at this host need not wait until our records are written.
    if (!this.#isMade || this.#unfinished > 0) {
      await this.#mail.tell(this.#ending()).catch(this.#mail.fail);
    }
    await this.#mail.end();
    const { unsent, failure, reported } = this.#mail;
    const isReported = unsent.length === 0 && reported === this.#turn.requests.length;
    const walked = { isReported, unsent: [...unsent, ...this.#browserTime.end()] };
    return failure ? { ...walked, failure } : walked;
  }

  /** Reports pages that the account has copies of; what is left has to be asked for. */
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

  /** How the site hears that the turn is over. */
  #ending(): Envelope {
    if (this.#isLost) return turnLost(this.#turn);
    const awayMs = this.#isSpaced ? this.#untoldAwayMs : this.#requests.awayMs;
    return turnFinished(this.#turn, { awayMs });
  }

  /** Makes these requests as the site says. What is not reported the job queues again. */
  async #make(requests: readonly TurnRequest[]): Promise<void> {
    try {
      await this.#begin(requests);
    } finally {
      await Promise.all(this.#underWay);
    }
    if (this.#stopped) throw this.#stopped.error;
  }

  /** Resolves once none of them is to be begun any more. */
  async #begin(requests: readonly TurnRequest[]): Promise<void> {
    const { clock, places } = this.#parts;
    const { call, signal } = this.#context;
    const either = AbortSignal.any([signal, this.#held.ended]);
    let left = requests;
    let nth = 0;
    while (left.length > 0) {
      const first = left.find(isPage);
      if (first !== undefined && !(await this.#hasTime(first))) return;
      // Those after the first were judged with it.
      const wanted = nth === 0 ? left : left.slice(0, 1);
      const asked = { ...this.#asking, nth, urls: wanted.map(({ url }) => url) };
      const begun = await beginTurn(asked, { call, clock, signal: either, places });
      if (begun.state === "gone") {
        // Where it is another worker's now, a request of it may be about to leave.
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
   * Resolves once the request has left and the site knows: the next may be asked for, and this one goes on beside it. The
   * site hears when it is done with: a host may ask to be left alone, or be slow with this one alone.
   */
  async #makeInItsMoment(
    request: TurnRequest,
    { moment, release }: Now,
    nth: number,
  ): Promise<void> {
    const startBy = this.#parts.clock.monotonic() + TURN_STARTS_MS_MAX;
    const left = Promise.withResolvers<void>();
    let told: Promise<void> | undefined;
    const onLeft = (telling: Promise<void>) => {
      told ??= telling;
      left.resolve();
    };
    this.#unfinished += 1;
    const made = this.#requests.make(request, { moment, nth, startBy, release, onLeft });
    const finished = made.then(async (awayMs) => {
      // One that came to its end without a request has had its moment as well.
      told ??= this.#requests.tellStarted(nth);
      await told;
      const isHeard = await this.#mail.tell(turnFinished(this.#turn, { nth, awayMs }));
      this.#unfinished -= 1;
      if (!isHeard) this.#untoldAwayMs ??= awayMs;
    });
    this.#underWay.push(
      finished.catch((error: unknown) => {
        // Its request has not left, and is made again or not at all.
        if (told === undefined) this.#unfinished -= 1;
        // Of one that needed another moment than it could have nobody hears, and the job queues it again.
        const isKnown = told === undefined || error instanceof TooLate || error instanceof NotMade;
        if (!isKnown) this.#stopped ??= { error };
      }),
    );
    await Promise.race([left.promise, made]);
    await (told ?? finished);
  }

  /** What may be asked for; of the rest it is said why not. */
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

  /** All of them, so many at once. */
  async #makeAtOnce(requests: readonly TurnRequest[], begun: Now, nth: number): Promise<void> {
    const { clock, places } = this.#parts;
    const { signal } = this.#context;
    const startBy = clock.monotonic() + TURN_STARTS_MS_MAX;
    const queue = requests.values();
    // One that has its moment must leave in time; where there are several the site has set no moment for each.
    const moment = requests.length === 1 ? begun.moment : undefined;
    const firsts = [begun.release];
    let stopped: { error: unknown } | undefined;
    const mayStart = () => !stopped && this.#mayGoOn() && clock.monotonic() <= startBy;
    const inTurn = async () => {
      for (const request of queue) {
        if (!mayStart()) return;
        const release = firsts.pop() ?? (await places.take(signal));
        // Others may have used up the time since the turn began; a request alone has its moment now.
        if (moment === undefined) await this.#hasTime(request).catch(releasing(release));
        // It may have waited for its place for longer than the site keeps the turn.
        if (!mayStart()) return release();
        await this.#requests.make(request, { moment, nth, startBy, release });
      }
    };
    // The turn is not over while a page of it loads: who fails waits for the others.
    const stop = (error: unknown) => {
      stopped ??= { error };
    };
    await Promise.all(Array.from({ length: begun.atOnce }, () => inTurn().catch(stop)));
    for (const release of firsts) release();
    if (stopped) throw stopped.error;
  }

  #mayGoOn(): boolean {
    const isOver = this.#stopped || this.#mail.failure || this.#isOutOfTime;
    return (
      !(isOver || this.#held.ended.aborted || this.#requests.awayMs !== undefined) &&
      this.#context.isSure()
    );
  }

  /** Whether the account has browser time for it; where not it is said, once, and nothing more is loaded. */
  async #hasTime(request: TurnRequest): Promise<boolean> {
    const reason = isPage(request) ? await this.#browserTime.lack() : undefined;
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

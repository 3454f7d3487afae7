/** What a worker does with a turn: it makes the turn's requests when the site lets it, and tells the job what came of each. */
import { randomBytes } from "node:crypto";
import type { Logger } from "pino";
import { type Envelope, envelope } from "../../schemas/contract.ts";
import { crawlJob, type PageOutcome } from "../../schemas/crawl-job.ts";
import { TURN_STARTS_MS_MAX } from "../../schemas/crawl-limits.ts";
import type { Turn, TurnRequest } from "../../schemas/crawl-page.ts";
import { ActorError } from "../../schemas/errors.ts";
import { type CrawlIntent, type PageVerdict, site } from "../../schemas/site.ts";
import { BrowserNotStartedError } from "../browser/browser-died-error.ts";
import type { ActorClient } from "../runtime/actor-client.ts";
import type { Clock } from "../runtime/clock.ts";
import type { TaskContext } from "../runtime/define-worker.ts";
import type { Places } from "../runtime/places.ts";
import { type Begun, beginTurn, type Departure, inTime, TooLate } from "./begin-turn.ts";
import { CrawlHeaders } from "./crawl-headers.ts";
import { fetchSitemap, type SitemapParts, type SitemapRequest } from "./fetch-sitemap.ts";
import type { HeldJob, JobShelf } from "./job-shelf.ts";
import { type CachedPage, type CacheStore, PageCache } from "./page-cache.ts";
import { PageOutcomes, type PageOutcomesParts, type PageRequest } from "./page-outcomes.ts";
import { TurnReport } from "./turn-report.ts";

export interface TurnWalkParts extends Omit<PageOutcomesParts, "cache"> {
  jobs: JobShelf;
  cache: CacheStore;
  sitemaps: SitemapParts;
  clock: Clock;
  logger: Logger;
  /** Pages in work, and large ones among them. */
  places: Places;
  largePlaces: Places;
  /** Where loading takes browser time: why the account may have none, if so. */
  outOfTime?(account: string, call: ActorClient["call"]): Promise<string | undefined>;
}

/** What a task may do while it runs. */
export type TurnContext = Pick<TaskContext, "signal" | "call" | "send">;

export interface WalkedTurn {
  browserMs: number;
  /** What could not be sent any more, since the task was taken from us; before anything else. */
  unsent: Envelope[];
  /** A fault of ours that kept something from the job. */
  failure?: { error: unknown };
}

/** Resolves once nothing of the turn is under way any more; what was used, and `turnEnded`, are still to be sent. */
export async function walkTurn(
  parts: TurnWalkParts,
  turn: Turn,
  context: TurnContext,
): Promise<WalkedTurn> {
  const held = await parts.jobs.hold(turn);
  try {
    return await new TurnWalk(parts, turn, context, held).run();
  } finally {
    held.release();
  }
}

export function turnFinished({ host, turn }: Turn, awayMs?: number): Envelope {
  return envelope(site, host, "turnFinished", { turn, ...(awayMs !== undefined && { awayMs }) });
}

/** Of a turn that may be with another worker, which does not know that it is over. */
export function turnLost({ host, turn }: Pick<Turn, "host" | "turn">): Envelope {
  return envelope(site, host, "turnFinished", { turn, lost: true });
}

export function turnEnded({ job, host, turn }: Turn, failed?: string): Envelope {
  return envelope(crawlJob, job, "turnEnded", { host, turn, ...(failed && { failed }) });
}

/** Looks into the cache at once, for one turn. */
const CACHE_LOOKS = 16;
const isPage = (request: TurnRequest): request is PageRequest => request.type === "page";
type Now = Extract<Begun, { state: "now" }>;

class TurnWalk {
  readonly #parts: TurnWalkParts;
  readonly #turn: Turn;
  readonly #context: TurnContext;
  readonly #held: HeldJob;
  readonly #report: TurnReport;
  readonly #outcomes: PageOutcomes;
  /** Pages that have come and are being made into records, and starts that the site is being told of. */
  readonly #underWay = new Set<Promise<void>>();
  #failure: { error: unknown } | undefined;
  #awayMs: number | undefined;
  #isLost = false;
  readonly #by = randomBytes(16).toString("hex");
  #browserMs = 0;
  readonly #unsent: Envelope[] = [];

  constructor(parts: TurnWalkParts, turn: Turn, context: TurnContext, held: HeldJob) {
    this.#parts = parts;
    this.#turn = turn;
    this.#context = context;
    this.#held = held;
    this.#report = new TurnReport({ turn, clock: parts.clock, send: this.#send });
    const cache = new PageCache(parts.cache, turn.account, held.request);
    this.#outcomes = new PageOutcomes({ ...parts, cache }, turn, held.request);
  }

  readonly #send = async (envelope: Envelope): Promise<void> => {
    const { signal, send } = this.#context;
    if (signal.aborted) this.#unsent.push(envelope);
    else await send([envelope]);
  };

  async run(): Promise<WalkedTurn> {
    try {
      const wanted = await this.#withoutCached();
      if (wanted.length > 0) await this.#make(wanted);
    } catch (error) {
      // A task that is taken from us gives back what it did not make, and reports the rest.
      if (!this.#context.signal.aborted) this.#failure ??= { error };
    }
    const fail = (error: unknown) => {
      this.#failure ??= { error };
    };
    // The next turn at this host need not wait until our records are written.
    const done = this.#isLost ? turnLost(this.#turn) : turnFinished(this.#turn, this.#awayMs);
    await this.#send(done).catch(fail);
    await Promise.all(this.#underWay);
    await this.#report.end().catch(fail);
    const walked = { browserMs: this.#browserMs, unsent: this.#unsent };
    return this.#failure ? { ...walked, failure: this.#failure } : walked;
  }

  /** Reports pages that the account has young enough copies of, and may still have; what is left has to be asked for. */
  async #withoutCached(): Promise<TurnRequest[]> {
    const { requests, host } = this.#turn;
    const { signal, call } = this.#context;
    if (this.#held.request.maxAge === 0) return requests;
    const copies = new Map<PageRequest, CachedPage>();
    await someAtOnce(requests.filter(isPage), async (request) => {
      const copy = await this.#outcomes.find(request);
      if (copy !== undefined) copies.set(request, copy);
    });
    if (copies.size === 0) return requests;
    const urls = Array.from(copies.keys(), ({ url }) => url);
    const { verdicts } = await call(site, host, "judge", { urls, intent: this.#intent });
    // What the site does not know yet it learns for a turn that begins.
    if (verdicts === undefined) return requests;
    const refused = new Map<TurnRequest, PageVerdict | undefined>();
    const used = new Map<TurnRequest, PageOutcome>();
    await someAtOnce([...copies].entries(), async ([position, [request, copy]]) => {
      const verdict = verdicts[position];
      if (verdict?.allowed !== true) {
        refused.set(request, verdict);
        return;
      }
      const outcome = await this.#outcomes.cached(request, copy, signal);
      if (outcome !== undefined) used.set(request, outcome);
    });
    for (const [request, verdict] of refused) this.#refuse(request, verdict);
    for (const outcome of used.values()) this.#report.add(outcome);
    return requests.filter((request) => !used.has(request) && !refused.has(request));
  }

  /** Makes these requests as the site says. What is not reported the job queues again. */
  async #make(requests: readonly TurnRequest[]): Promise<void> {
    const { clock, places, outOfTime } = this.#parts;
    const { call, signal } = this.#context;
    const { account, host, turn } = this.#turn;
    const intent = this.#intent;
    const urls = requests.map(({ url }) => url);
    const reason = await outOfTime?.(account, call);
    if (reason !== undefined) {
      for (const { index } of requests.filter(isPage)) {
        this.#report.add({ kind: "out_of_time", index, reason });
      }
      return;
    }
    for (;;) {
      const asked = { host, turn, urls, intent, by: this.#by };
      const begun = await beginTurn(asked, { call, clock, signal, places });
      if (begun.state === "gone") {
        // Where it is another worker's now, a request of it may be about to leave.
        this.#isLost = true;
        return;
      }
      try {
        return await this.#makeNow(requests, begun);
      } catch (error) {
        if (!(error instanceof TooLate)) throw error;
      }
    }
  }

  get #intent(): CrawlIntent {
    const { crawlPurposes: purposes, contentUse } = this.#held.request;
    return { purposes, ...(contentUse !== undefined && { contentUse }) };
  }

  async #makeNow(requests: readonly TurnRequest[], begun: Now): Promise<void> {
    const { clock, places } = this.#parts;
    const { signal } = this.#context;
    const lastStartAt = clock.monotonic() + TURN_STARTS_MS_MAX;
    const queue = requests.entries();
    // One that has its moment must leave in time; where there are several the site has set no moment for each.
    const lateAt = requests.length === 1 ? begun.lateAt : undefined;
    const firsts = [begun.release];
    let stopped: { error: unknown } | undefined;
    const mayStart = () =>
      !stopped && !this.#failure && this.#awayMs === undefined && clock.monotonic() <= lastStartAt;
    const inTurn = async () => {
      for (const [position, request] of queue) {
        const verdict = begun.verdicts[position];
        if (verdict?.allowed !== true) {
          this.#refuse(request, verdict);
          continue;
        }
        if (!mayStart()) return;
        const release = firsts.pop() ?? (await places.take(signal));
        // It may have waited for its place for longer than the site keeps the turn.
        if (!mayStart()) return release();
        await this.#one(request, lateAt, release);
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

  #refuse(request: TurnRequest, verdict: PageVerdict | undefined): void {
    const { reason, unreachable } =
      verdict?.allowed === false ? verdict : { reason: "The site gave no verdict" };
    if (isPage(request)) {
      const { index } = request;
      this.#report.add({ kind: "disallowed", index, reason, ...(unreachable && { unreachable }) });
    } else {
      const { job, turn } = this.#turn;
      const { url, nesting } = request;
      const end = { failed: reason, retry: false };
      const slice = { turn, url, nesting, urls: [], nested: [], end };
      this.#later(() => this.#send(envelope(crawlJob, job, "sitemapRead", slice)));
    }
  }

  /** Resolves when the host is done with the request; what is left of the work goes on beside the next. */
  async #one(request: TurnRequest, lateAt: number | undefined, release: () => void): Promise<void> {
    const make = (start: Start) =>
      isPage(request) ? this.#page(request, start) : this.#sitemap(request, start);
    const { signal, call } = this.#context;
    if (lateAt === undefined) return make({ signal, onStarting() {}, onStarted() {}, release });
    const { host, turn } = this.#turn;
    const asked = { host, turn, urls: [request.url], intent: this.#intent, by: this.#by };
    const { clock } = this.#parts;
    let isTold = false;
    await inTime(asked, { call, clock, signal }, lateAt, (departure) =>
      make({
        ...departure,
        onStarted: () => {
          departure.onStarted();
          // A request that is made again over another connection has left already.
          if (!isTold) this.#later(() => this.#tellStarted());
          isTold = true;
        },
        release,
      }),
    );
  }

  /** The next request's delay counts from here; without an answer the site counts from the end of the turn. */
  async #tellStarted(): Promise<void> {
    const { host, turn } = this.#turn;
    await this.#context.call(site, host, "requestStarted", { turn }).catch((error: unknown) => {
      if (!(error instanceof ActorError)) throw error;
    });
  }

  async #page(
    request: PageRequest,
    { signal, onStarting, onStarted, release }: Start,
  ): Promise<void> {
    const releases = [release];
    const onLarge = async () => {
      releases.push(await this.#parts.largePlaces.take(signal));
    };
    const done = () => {
      for (const one of releases) one();
    };
    try {
      const { url } = request;
      const loader = await this.#held.loader();
      const load = { url, signal, onStarting, onStarted, onLarge };
      const answer = await loader.load(load).catch((error) => {
        if (signal.aborted) throw signal.reason;
        // No page is at fault where there is no browser.
        if (error instanceof BrowserNotStartedError) throw error;
        return this.#fault(error, url);
      });
      this.#browserMs += answer.browserMs;
      const awayMs = "awayMs" in answer ? answer.awayMs : undefined;
      if (awayMs !== undefined) this.#awayMs = Math.max(awayMs, this.#awayMs ?? 0);
      this.#later(async () => {
        try {
          this.#report.add(await this.#outcomes.of(request, answer, this.#context.signal));
        } finally {
          done();
        }
      });
    } catch (error) {
      done();
      throw error;
    }
  }

  #fault(error: unknown, url: string) {
    const { job, host } = this.#turn;
    const known = error instanceof ActorError;
    if (!known) this.#parts.logger.error({ err: error, job, host, url }, "page not loaded");
    const reason = known ? error.message : "Cannot load the page: a fault of the crawler";
    return { kind: "failed", reason, retry: true, status: undefined, browserMs: 0 } as const;
  }

  async #sitemap(
    request: SitemapRequest,
    { signal, onStarting, onStarted, release }: Start,
  ): Promise<void> {
    const { sitemaps, clock } = this.#parts;
    const { job, turn } = this.#turn;
    const headers = new CrawlHeaders(this.#held.request).forFile(request.url, clock.now());
    const send = this.#send;
    try {
      const task = { job, turn, request, headers, signal, onStarting, onStarted, send };
      const { awayMs } = await fetchSitemap(sitemaps, task);
      if (awayMs !== undefined) this.#awayMs = Math.max(awayMs, this.#awayMs ?? 0);
    } finally {
      release();
    }
  }

  /** Work that the requests need not wait for, and the end of the turn does. */
  #later(work: () => Promise<void>): void {
    const promise = work()
      .catch((error: unknown) => {
        if (!this.#context.signal.aborted) this.#failure ??= { error };
      })
      .finally(() => this.#underWay.delete(promise));
    this.#underWay.add(promise);
  }
}

interface Start extends Departure {
  release(): void;
}

async function someAtOnce<T>(all: Iterable<T>, look: (one: T) => Promise<void>): Promise<void> {
  const queue = Iterator.from(all);
  const lookOn = async () => {
    for (const one of queue) await look(one);
  };
  await Promise.all(Array.from({ length: CACHE_LOOKS }, lookOn));
}

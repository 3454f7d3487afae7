/**
 * Makes the requests of a turn and reports their results. If the site has set a time window for a request, the
 * request leaves within it.
 */
import type { Logger } from "pino";
import type { Turn, TurnRequest } from "../../../../schemas/crawl/crawl-page.ts";
import { site } from "../../../../schemas/crawl/site.ts";
import { ActorError } from "../../../../schemas/errors.ts";
import { timeWork } from "../../../../schemas/meter.ts";
import { guardFor } from "../../../egress/egress-guard.ts";
import { BrowserNotStartedError } from "../../../rendering/lib/browser/browser-died-error.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";
import type { FairSemaphore } from "../../../runtime/lib/fair-semaphore.ts";
import type { TaskContext } from "../../../runtime/workers/define-worker.ts";
import type { Moment, TurnToBegin } from "../../lib/departure/begin-turn.ts";
import {
  atAnyTime,
  type Departure,
  inTime,
  type Left,
  NotMade,
} from "../../lib/departure/departure.ts";
import { CrawlHeaders } from "../../lib/load/crawl-headers.ts";
import { isPage } from "../../lib/records/cached-pages.ts";
import type { HeldJob } from "../../lib/records/held-jobs.ts";
import type { PageOutcomes, PageRequest } from "../../lib/records/page-outcomes.ts";
import type { BrowserTime } from "./browser-time.ts";
import { fetchSitemap, type SitemapParts, type SitemapRequest } from "./fetch-sitemap.ts";
import type { TurnMail } from "./turn-mail.ts";

/** A held job during a turn. `ended` aborts when the job has ended. */
export type TurnsJob = Omit<HeldJob, "ended"> & { ended: AbortSignal };

/** The resources that all turns of a worker share. */
export interface TurnsWorker {
  sitemaps: SitemapParts;
  clock: Clock;
  logger: Logger;
  /** Places for large pages. Each account has a share. */
  largePlaces: FairSemaphore;
}

interface TurnRequestsParts {
  worker: TurnsWorker;
  turn: Turn;
  /** The fields of every call to the site. */
  asking: Omit<TurnToBegin, "urls">;
  context: Pick<TaskContext, "signal" | "call">;
  held: TurnsJob;
  mail: TurnMail;
  outcomes: PageOutcomes;
  browserTime: BrowserTime;
}

/** The place and the timing of a request. */
interface Place {
  /** Time window in which the request may leave; undefined if the site has set none. */
  moment: Moment | undefined;
  /** Number of the request in its turn. Requests without a time window all have the number of the first one. */
  nth: number;
  /** Called when the request has left. `reported` resolves when the site has recorded that, or cannot be reached. */
  onLeft?: (reported: Promise<void>) => void;
  /** Latest start of the request, in monotonic clock time. */
  startBy: number;
  /** Releases the place. */
  release(): void;
}

/** A request that its host has finished. */
interface Made {
  /** Pause that the host asked for. */
  awayMs: number | undefined;
  /** Resolves when the outcome is sent to the job, or when the report has failed. Never rejects. */
  reported: Promise<void>;
}

type Start = Departure & Pick<Place, "startBy" | "release">;

export class TurnRequests {
  readonly #parts: TurnRequestsParts;
  #awayMs: number | undefined;

  constructor(parts: TurnRequestsParts) {
    this.#parts = parts;
  }

  /** Pause that the host asked for, if it did. */
  get awayMs(): number | undefined {
    return this.#awayMs;
  }

  /** Makes a request. Resolves when the host has finished it, while the worker may still make its record. */
  async make(request: TurnRequest, { moment, nth, onLeft, ...place }: Place): Promise<Made> {
    const make = (start: Start) =>
      isPage(request) ? this.#page(request, start) : this.#sitemap(request, start);
    const { worker, asking, context, held, mail } = this.#parts;
    const { signal, call } = context;
    const { ended } = held;
    if (moment === undefined) return make({ ...atAnyTime({ signal, ended }), ...place });
    const input = { ...asking, nth, urls: [request.url] };
    const reportLeft = (left: Left) => {
      const reported = this.reportStart(nth, left);
      void mail.later(() => reported);
      onLeft?.(reported);
      return reported;
    };
    const parts = { call, clock: worker.clock, signal, ended, onLeft: reportLeft };
    return await inTime(input, parts, moment, (departure) => make({ ...departure, ...place }));
  }

  /**
   * Reports to the site that a request has left, because the site counts the next delay from that time. If this
   * report is lost, the site counts from the end of the turn.
   */
  async reportStart(nth: number, left?: Left): Promise<void> {
    const { host, turn } = this.#parts.turn;
    const { again = false, lateMs } = left ?? {};
    const started = { turn, nth, ...(left && { lateMs }), ...(again && { again }) };
    await this.#parts.context
      .call(site, host, "requestStarted", started)
      .catch((error: unknown) => {
        if (!(error instanceof ActorError)) throw error;
      });
  }

  async #page(request: PageRequest, { release, ...start }: Start): Promise<Made> {
    const { signal } = start;
    const { worker, turn, context, held, mail, outcomes, browserTime } = this.#parts;
    const releases = [release];
    const onLarge = async () => {
      releases.push(await worker.largePlaces.take(turn.account, signal));
    };
    const done = () => {
      for (const releasePlace of releases) releasePlace();
    };
    try {
      const { url, index, alone: isAlone = false } = request;
      const loader = await held.loader();
      const page = { url, isStart: index === 0, isAlone };
      const startedAt = worker.clock.monotonic();
      const answer = await loader.load({ ...page, ...start, onLarge }).catch((error) => {
        if (signal.aborted) throw signal.reason;
        if (error instanceof NotMade) throw error;
        // No browser could be started. That is not the page's fault, so it must not count as a failure of the page.
        if (error instanceof BrowserNotStartedError) throw error;
        return this.#fault(error, url);
      });
      const way = held.request.render ? "browser" : "http";
      timeWork("crawl_page_seconds", { way }, worker.clock.monotonic() - startedAt);
      const used = browserTime.add(answer.browserMs);
      if (used !== undefined) void mail.later(() => mail.send(used));
      const awayMs = "awayMs" in answer ? answer.awayMs : undefined;
      const reported = mail.reportLater(() =>
        outcomes.of(request, answer, context.signal).finally(done),
      );
      return { awayMs: this.#recordPause(awayMs), reported };
    } catch (error) {
      done();
      throw error;
    }
  }

  #fault(error: unknown, url: string) {
    const { worker, turn } = this.#parts;
    const { job, host } = turn;
    const known = error instanceof ActorError;
    if (!known) worker.logger.error({ err: error, job, host, url }, "page not loaded");
    const reason = known ? error.message : "Cannot load the page: a fault of the crawler";
    return { kind: "failed", reason, retry: true, status: undefined, browserMs: 0 } as const;
  }

  async #sitemap(request: SitemapRequest, { release, ...departure }: Start): Promise<Made> {
    const { worker, held, mail } = this.#parts;
    const { job, turn, account } = this.#parts.turn;
    const { sitemaps, clock } = worker;
    const headers = new CrawlHeaders(held.request).forFile(request.url, clock.now());
    const { send } = mail;
    try {
      const task = { job, turn, request, headers, departure, send };
      const guard = guardFor(account, sitemaps.guard);
      const { awayMs } = await fetchSitemap({ ...sitemaps, guard }, task);
      return { awayMs: this.#recordPause(awayMs), reported: Promise.resolve() };
    } finally {
      release();
    }
  }

  #recordPause(ms: number | undefined): number | undefined {
    if (ms !== undefined) this.#awayMs = Math.max(ms, this.#awayMs ?? 0);
    return ms;
  }
}

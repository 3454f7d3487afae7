/** Streams the progress of a crawl to a client until the crawl ends. */
import type { Response } from "express";
import type { LiveUpdate, LiveUpdates } from "../../actors/runtime/bus/live.ts";
import type { ActorClient } from "../../actors/runtime/calls/actor-client.ts";
import { SharedSlots } from "../../actors/runtime/lib/shared-slots.ts";
import { type CrawlNews, crawlJob } from "../../schemas/crawl/crawl-job.ts";
import type { WireCrawlSummary } from "../../schemas/crawl/http/crawl-answers.ts";
import {
  CRAWL_SHARE_KEPT_FREE,
  EVENT_STREAMS_MAX,
  EVENT_STREAMS_OF_ACCOUNT_MAX,
} from "../../schemas/crawl/limits.ts";
import { ActorError, type ErrorCode } from "../../schemas/errors.ts";
import { EventStream } from "../http/event-stream.ts";
import { wireSummary } from "./crawl-wire.ts";

/**
 * Interval at which a stream checks its client's token and reads the job's state, because live messages may be lost.
 */
const EVENTS_POLL_MS = 5_000;
/** Proxies close connections that are silent for 30 s and more. */
const EVENTS_KEEP_ALIVE_MS = 15_000;

/** The job that a client follows, and its rights. */
interface Following {
  job: string;
  accountId: string;
  /** Whether the client's credential still opens the job. */
  isStillAllowed: () => Promise<boolean>;
}

interface CrawlEventsParts {
  actors: ActorClient;
  live: LiveUpdates;
  /** Aborts when this gateway stops. Its clients reconnect to another one. */
  stopping: AbortSignal;
  pollMs?: number;
  keepAliveMs?: number;
  streamsMax?: number;
}

/**
 * Id of the last event of a stream. If a client reconnects with this id, it gets status 204, because there are no
 * more events.
 */
const FINISHED = "finished";
const OVER_STATUS = 204;

/** The event streams of one gateway. */
export class CrawlEvents {
  readonly #parts: Required<CrawlEventsParts>;
  readonly #slots: SharedSlots<string>;

  constructor(parts: CrawlEventsParts) {
    this.#parts = {
      pollMs: EVENTS_POLL_MS,
      keepAliveMs: EVENTS_KEEP_ALIVE_MS,
      streamsMax: EVENT_STREAMS_MAX,
      ...parts,
    };
    const { streamsMax: max } = this.#parts;
    const keptFree = Math.floor(max * CRAWL_SHARE_KEPT_FREE);
    this.#slots = new SharedSlots({ max, perOwner: EVENT_STREAMS_OF_ACCOUNT_MAX, keptFree });
  }

  /** Streams the job's progress, and resolves when the stream has ended. A refusal rejects before the first event. */
  async follow(
    { signal, ...following }: Following & { signal: AbortSignal },
    response: Response,
  ): Promise<void> {
    const { job, accountId } = following;
    const release = this.#reserve(accountId);
    const watching = new AbortController();
    const ended = AbortSignal.any([signal, this.#parts.stopping, watching.signal]);
    try {
      const updates = await this.#parts.live.subscribe(crawlJob, job, ended);
      const summary = await this.#look(job, accountId, signal);
      if (response.req.get("last-event-id") === FINISHED && summary.status !== "running") {
        response.status(OVER_STATUS).end();
        return;
      }
      // A HEAD request has no body, so without this it would wait until the crawl ends.
      if (response.req.method === "HEAD") {
        response.type("text/event-stream").end();
        return;
      }
      const follower = new Follower(new EventStream(response), summary);
      const relayed = relay(updates, follower);
      await this.#followTo(follower, following, ended);
      watching.abort();
      await relayed;
    } finally {
      watching.abort();
      release();
    }
  }

  async #followTo(
    follower: Follower,
    { job, accountId, isStillAllowed }: Following,
    ended: AbortSignal,
  ): Promise<void> {
    const { pollMs, keepAliveMs } = this.#parts;
    while (!follower.isFinished && !ended.aborted) {
      await follower.wait(pollMs, ended);
      follower.keepAlive(keepAliveMs);
      try {
        // A stream is open for hours, so a revoked token must end it.
        if (!(await isStillAllowed())) break;
        follower.show(await this.#look(job, accountId, ended));
      } catch (error) {
        if (ended.aborted) break;
        // The results have expired during the stream.
        if (isRefusal(error, ["not_found"])) break;
        // If the job is unavailable, for example because its actor moves to another host, the stream goes on and
        // reads its state later.
        if (!isRefusal(error, ["unavailable", "busy", "deadline_exceeded"])) throw error;
      }
    }
    follower.end();
  }

  async #look(job: string, accountId: string, signal: AbortSignal): Promise<WireCrawlSummary> {
    const summary = await this.#parts.actors.call(
      crawlJob,
      job,
      "get",
      { account: accountId },
      { signal },
    );
    return wireSummary(job, summary);
  }

  #reserve(accountId: string): () => void {
    const release = this.#slots.tryTake(accountId);
    if (release) return release;
    if (this.#slots.takenBy(accountId) >= EVENT_STREAMS_OF_ACCOUNT_MAX) {
      const text = `Cannot follow crawl: the account follows ${EVENT_STREAMS_OF_ACCOUNT_MAX} already`;
      throw new ActorError("rate_limited", text, { retryAfterS: 10 });
    }
    const { taken } = this.#slots;
    const text = `Cannot follow crawl: ${taken} of ${this.#parts.streamsMax} are followed here already`;
    throw new ActorError("busy", text, { retryAfterS: 10 });
  }
}

async function relay(
  updates: AsyncIterable<LiveUpdate<CrawlNews>>,
  follower: Follower,
): Promise<void> {
  for await (const update of updates) follower.relay(update);
}

/** Sends one client the changes since its last event. */
class Follower {
  readonly #stream: EventStream;
  #shown: CrawlProgress;
  /** Number of changed pages that were not sent because the client reads too slowly. */
  #missed = 0;
  #finished = false;
  #woken = Promise.withResolvers<void>();

  constructor(stream: EventStream, summary: WireCrawlSummary) {
    this.#stream = stream;
    this.#shown = progressOf(summary);
    stream.send("status", summary);
    this.show(summary);
  }

  get isFinished(): boolean {
    return this.#finished;
  }

  /** Sends the changed pages of a live update. */
  relay(update: LiveUpdate<CrawlNews>): void {
    if (this.#finished) return;
    if ("missed" in update) {
      this.#stream.send("missed", { pages: null });
      this.#woken.resolve();
      return;
    }
    const { value: news } = update;
    if (news.status !== "running") this.#woken.resolve();
    if (this.#stream.isBehind) {
      this.#missed += news.pages.length;
      return;
    }
    this.#sendMissed();
    for (const page of news.pages) this.#stream.send("page", page);
    if (news.status === "running") this.#sendProgress(progressOf(news));
  }

  /** Sends the job's own state. */
  show(summary: WireCrawlSummary): void {
    if (this.#finished) return;
    if (summary.status === "running") {
      if (!this.#stream.isBehind) this.#sendMissed();
      this.#sendProgress(progressOf(summary));
      return;
    }
    this.#finished = true;
    this.#sendMissed();
    this.#stream.send("finished", summary, FINISHED);
  }

  /**
   * Waits up to `ms` milliseconds. Resolves earlier when a live update shows that the job has ended or updates were
   * missed, or when the signal aborts.
   */
  async wait(ms: number, signal: AbortSignal): Promise<void> {
    const { promise, resolve } = this.#woken;
    const timer = setTimeout(resolve, ms);
    const leave = () => resolve();
    signal.addEventListener("abort", leave, { once: true });
    await promise;
    clearTimeout(timer);
    signal.removeEventListener("abort", leave);
    this.#woken = Promise.withResolvers();
  }

  keepAlive(afterMs: number): void {
    if (this.#stream.silentMs >= afterMs) this.#stream.keepAlive();
  }

  end(): void {
    this.#stream.end();
  }

  #sendMissed(): void {
    if (this.#missed > 0) this.#stream.send("missed", { pages: this.#missed });
    this.#missed = 0;
  }

  #sendProgress(progress: CrawlProgress): void {
    const { total, finished, skipped } = progress;
    const shown = this.#shown;
    if (shown.total === total && shown.finished === finished && shown.skipped === skipped) return;
    this.#shown = progress;
    this.#stream.send("progress", progress);
  }
}

type CrawlProgress = Pick<WireCrawlSummary, "status" | "total" | "finished" | "skipped">;

const progressOf = ({ status, total, finished, skipped }: CrawlProgress): CrawlProgress => ({
  status,
  total,
  finished,
  skipped,
});

const isRefusal = (error: unknown, codes: readonly ErrorCode[]) =>
  error instanceof ActorError && codes.includes(error.code);

/** Creates the crawl worker of a process with the resources that its lanes share. */
import { availableParallelism } from "node:os";
import type { Logger } from "pino";
import { MARKDOWN_QUEUE_MAX } from "../../../../schemas/crawl/limits.ts";
import { ActorError } from "../../../../schemas/errors.ts";
import { browserTime } from "../../../../schemas/rendering/browser-time.ts";
import { EgressAgents } from "../../../egress/egress-fetch.ts";
import { type EgressGuard, guardFor } from "../../../egress/egress-guard.ts";
import { JsonChecker } from "../../../rendering/lib/ai/json-checker.ts";
import { JsonExtractor, type OperatorsAi } from "../../../rendering/lib/ai/json-extractor.ts";
import type { BrowserPool } from "../../../rendering/lib/browser/browser-pool.ts";
import { MarkdownPool } from "../../../rendering/lib/extract/markdown-pool.ts";
import { RequestKeys } from "../../../rendering/lib/request-keys/request-keys.ts";
import type { Bus } from "../../../runtime/bus/bus.ts";
import { BusLiveUpdates } from "../../../runtime/bus/live.ts";
import { BusActorClient } from "../../../runtime/calls/actor-client.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";
import { FairSemaphore } from "../../../runtime/lib/fair-semaphore.ts";
import { Semaphore } from "../../../runtime/lib/semaphore.ts";
import { BlobStore } from "../../../runtime/store/blob-store.ts";
import { TtlStore } from "../../../runtime/store/ttl-store.ts";
import type { TurnLimits } from "../../../runtime/workers/task-turns.ts";
import { HttpPageLoader } from "../../lib/load/http-page-loader.ts";
import { BrowserPageLoader } from "../../lib/load-in-browser/browser-page-loader.ts";
import { HeldJobs, type HeldJobsParts } from "../../lib/records/held-jobs.ts";
import { CachedPage } from "../../lib/records/page-cache.ts";
import { RecordWriter } from "../../lib/records/record-writer.ts";
import type { OutOfTime } from "./browser-time.ts";
import { crawlPageWorker } from "./crawl-page.ts";
import { watchJob } from "./job-watch.ts";

/** Timeout of one page load by HTTP, until the last byte. A page load in a browser has the same default timeout. */
export const CRAWL_FETCH_MS_MAX = 30_000;
/*
 * Each limit below is that of one account. A quarter more places are for accounts that have none (`fairLimits`).
 */
/**
 * Maximum number of large bodies in memory at the same time. While a body becomes a record, it takes six times its
 * size: 0.5 GB for those of one account, and 0.6 GB for all of them.
 */
export const LARGE_BODIES_MAX = 8;
/**
 * Maximum number of cached pages that are copied at the same time. A copy of a large page holds 8 MB of its chunks:
 * 130 MB for one account, and 160 MB for all of them.
 */
export const CACHED_COPIES_MAX = 16;
/**
 * Maximum number of HTTP turns that a worker holds at the same time. A host with a delay needs two. A turn that waits
 * costs a few kilobytes.
 */
export const FETCH_TURNS_MAX = 128;
/**
 * Maximum number of browser turns that a worker holds at the same time. More would not help, because the browsers
 * load only a few dozen pages per second.
 */
export const RENDER_TURNS_MAX = 64;
export const ROBOTS_TURNS_MAX = 32;
/**
 * Maximum number of concurrent purges of a worker. The store does most of their work. Purges have their own lane,
 * because a crawl request with secrets must be removed soon, even if other lanes are busy.
 */
export const JOB_PURGES_MAX = 4;
/**
 * Maximum number of concurrent JSON tasks of a worker. Such a task waits seconds for a model and needs little
 * processor time.
 */
export const JSON_TASKS_MAX = 8;
/**
 * Maximum number of pages that a worker fetches by HTTP or stores at the same time. Eight busy hosts fit, with a few
 * hundred kilobytes for each page.
 */
export const FETCH_PAGES_MAX = 64;
/**
 * Maximum number of separate browsers at the same time. Each loads a single page, which may have ended the browser
 * before. Such a browser takes about 150 MB and is rarely needed.
 */
const BROWSERS_APART_MAX = 1;

/**
 * Returns the limits of places of which one account may have `perAccount`. A quarter more is reserved for accounts
 * without a place: pages that never answer would otherwise hold all places for minutes.
 */
export function fairLimits(perAccount: number): { places: number; reserved: number } {
  const reserved = Math.ceil(perAccount / 4);
  return { places: perAccount + reserved, reserved };
}

/** Returns the limits of a lane of which one account may run `perAccount` tasks. They wait for the network. */
function laneLimits(perAccount: number): TurnLimits {
  const { places, reserved } = fairLimits(perAccount);
  return { places, computing: places, perKey: perAccount, reserved };
}

export interface CrawlWorkerParts {
  bus: Bus;
  clock: Clock;
  logger: Logger;
  guard: EgressGuard;
  pool: BrowserPool;
  /** Concurrent pages in browsers. */
  renders: number;
  /** Browser time per account and day; 0 means no limit. */
  browserMsPerDay: number;
  ai: OperatorsAi | undefined;
}

/** Creates the worker. Close it when no task is running. */
export function openCrawlWorker(parts: CrawlWorkerParts) {
  const { bus, clock, logger, guard, pool, renders, browserMsPerDay, ai } = parts;
  const blobs = new BlobStore(bus, clock);
  const markdown = new MarkdownPool({ threads: Math.max(1, availableParallelism() - 1) });
  const checker = new JsonChecker();
  const agents = new EgressAgents({ guard });
  const actors = new BusActorClient(bus, clock);
  const watching = { live: new BusLiveUpdates(bus), call: actors.call.bind(actors), clock };
  const watch: HeldJobsParts["watch"] = (job, closed) => watchJob(watching, job, closed);
  const requestKeys = new RequestKeys(bus);
  const fetched = new HeldJobs({
    ...{ blobs, requestKeys, clock, watch },
    open: async ({ account }, request) => {
      const ofAccount = guardFor(account, guard);
      return new HttpPageLoader({ guard: ofAccount, clock, request, fetchMs: CRAWL_FETCH_MS_MAX });
    },
  });
  const apart = new FairSemaphore({ places: BROWSERS_APART_MAX });
  const rendered = new HeldJobs({
    ...{ blobs, requestKeys, clock, watch },
    open: async ({ account }, request) =>
      new BrowserPageLoader({ pool, clock, account, request, apart: apart.of(account) }),
  });
  const shared = {
    cache: new TtlStore(bus, "page", CachedPage),
    sitemaps: { guard, clock },
    clock,
    logger,
    largePlaces: new FairSemaphore(fairLimits(LARGE_BODIES_MAX)),
    copyPlaces: new FairSemaphore(fairLimits(CACHED_COPIES_MAX)),
    markdown,
    markdownPlaces: new Semaphore(MARKDOWN_QUEUE_MAX),
    records: new RecordWriter(blobs),
    blobs,
    unreported: new Map<string, number>(),
  };
  const outOfTime: OutOfTime = async (id, untoldMs, call) => {
    try {
      await call(browserTime, id, "admit", { limitMs: browserMsPerDay, untoldMs });
      return undefined;
    } catch (error) {
      if (error instanceof ActorError && error.code === "browser_time_exceeded") {
        return error.message;
      }
      throw error;
    }
  };
  const definition = crawlPageWorker({
    lanes: {
      fetch: laneLimits(FETCH_TURNS_MAX),
      browser: laneLimits(RENDER_TURNS_MAX),
      robots: laneLimits(ROBOTS_TURNS_MAX),
      json: laneLimits(JSON_TASKS_MAX),
      purge: laneLimits(JOB_PURGES_MAX),
    },
    fetch: { ...shared, jobs: fetched, places: new FairSemaphore(fairLimits(FETCH_PAGES_MAX)) },
    // One page more than `renders` at a time costs each page little, and only while accounts share the worker.
    browser: {
      ...shared,
      jobs: rendered,
      places: new FairSemaphore({ places: renders + 1, reserved: 1 }),
      outOfTime,
    },
    robots: { guard, clock, places: new FairSemaphore(fairLimits(ROBOTS_TURNS_MAX)) },
    json: {
      blobs,
      extractor: new JsonExtractor({ agents, checker, clock, operators: ai }),
      markdown,
      markdownPlaces: shared.markdownPlaces,
      largePlaces: shared.largePlaces,
      hold: fetched.hold.bind(fetched),
      clock,
    },
    blobs,
  });
  return { definition, close };

  async function close(): Promise<void> {
    await Promise.all([fetched.close(), rendered.close(), markdown.close(), checker.close()]);
    agents.close();
  }
}

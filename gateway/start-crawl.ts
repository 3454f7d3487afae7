/** Starts a crawl: what must be so before a job is there, in order. */
import { randomBytes } from "node:crypto";
import type { ActorClient } from "../actors/runtime/actor-client.ts";
import type { BlobStore } from "../actors/runtime/blob-store.ts";
import { account } from "../schemas/account.ts";
import { crawlJob } from "../schemas/crawl-job.ts";
import {
  CRAWL_CONSULT_MS,
  CRAWL_REQUEST_KEPT_S,
  CRAWL_START_WAIT_MS,
} from "../schemas/crawl-limits.ts";
import { crawlList } from "../schemas/crawl-list.ts";
import { ActorError } from "../schemas/errors.ts";
import type { CrawlRequest } from "../schemas/http/crawl.ts";
import { site } from "../schemas/site.ts";
import { planOf } from "./crawl-wire.ts";
import type { LiveSource } from "./live-source.ts";

export interface CrawlStarting {
  actors: ActorClient;
  blobs: Pick<BlobStore, "put">;
  live: LiveSource;
  /** Of an account and UTC day; 0 is no limit. */
  browserMsPerDay: number;
  /** Whether there is a model for the format json besides those a request brings. */
  hasModel: boolean;
  now: () => number;
  /** How long a robots.txt that is not known is waited for. */
  waitMs?: number;
}

/** In the words of the public API, which clients look for. */
const DISALLOWED = "Crawl purpose(s) completely disallowed by Content-Signal directive";

/** Resolves with the job's id once it will be done. */
export async function startCrawl(
  starting: CrawlStarting,
  accountId: string,
  request: CrawlRequest,
  signal: AbortSignal,
): Promise<string> {
  const { actors, blobs, browserMsPerDay } = starting;
  checkModel(request, starting.hasModel);
  checkModifiedSince(request, starting.now());
  if (request.render) {
    const limit = { limitMs: browserMsPerDay };
    await actors.call(account, accountId, "admitRendering", limit, { signal });
  }
  await consultSite(starting, request, signal);
  // Late, since it holds a place for a while, started or not.
  await actors.call(crawlList, accountId, "admit", {}, { signal });
  const id = randomBytes(16).toString("hex");
  const content = Buffer.from(JSON.stringify(request));
  const kept = { ttlS: CRAWL_REQUEST_KEPT_S, signal };
  const stored = await blobs.put(`crawl.${id}.request`, content, kept);
  const start = { account: accountId, plan: planOf(request), request: stored };
  // From here on the client's leaving changes nothing: a job is started whole or not at all.
  await actors.call(crawlJob, id, "start", start);
  return id;
}

/** Refuses when the site's content signal is known, or becomes known in time, and forbids the crawl. */
async function consultSite(
  { actors, live, waitMs = CRAWL_START_WAIT_MS }: CrawlStarting,
  request: CrawlRequest,
  signal: AbortSignal,
): Promise<void> {
  const { host, protocol } = new URL(request.url);
  const scheme = protocol === "https:" ? ("https" as const) : ("http" as const);
  const asked = { scheme, intent: planOf(request).intent };
  const consult = async () => {
    const answer = await actors.call(site, host, "consult", asked, { signal });
    if (!answer.known) return false;
    if (answer.refusal !== undefined) throw new ActorError("crawl_disallowed", DISALLOWED);
    return true;
  };
  if (await consult()) return;
  let spoken = Promise.withResolvers<void>();
  const unsubscribe = live.subscribe(site.kind, host, () => spoken.resolve());
  try {
    const giveUpAt = performance.now() + waitMs;
    // What a live message says may be lost, and what it said before we listened is: so it is asked at intervals too.
    for (let known = await consult(); !known; known = await consult()) {
      const leftMs = giveUpAt - performance.now();
      if (leftMs <= 0) return;
      await eitherOf(spoken.promise, Math.min(CRAWL_CONSULT_MS, leftMs), signal);
      spoken = Promise.withResolvers<void>();
    }
  } finally {
    unsubscribe();
  }
}

/** Resolves with the promise, or after so many milliseconds; rejects with the signal's reason. */
function eitherOf(promise: Promise<void>, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(done, ms);
    const leave = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    signal.addEventListener("abort", leave, { once: true });
    void promise.then(done);
    function done() {
      clearTimeout(timer);
      signal.removeEventListener("abort", leave);
      resolve();
    }
  });
}

function checkModel({ formats, jsonOptions }: CrawlRequest, hasModel: boolean): void {
  if (hasModel || !formats.includes("json") || jsonOptions?.custom_ai !== undefined) return;
  throw invalid(
    "/jsonOptions/custom_ai",
    "Missing, expected a model to ask, since this service has none of its own (TRUNKLINE_AI_BASE_URL)",
  );
}

function checkModifiedSince({ modifiedSince }: CrawlRequest, now: number): void {
  if (modifiedSince === undefined || modifiedSince * 1_000 <= now) return;
  throw invalid("/modifiedSince", "Expected Unix seconds that are past, not milliseconds");
}

function invalid(pointer: string, expected: string): ActorError {
  const faults = [{ pointer, message: `Cannot accept ${pointer}: ${expected}` }];
  return new ActorError("invalid_request", "Cannot start crawl: see the faults", { faults });
}

/** Starts a crawl after all checks, in their order. */
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { SecretBox } from "../../actors/apps/lib/app-secrets/secret-box.ts";
import type { LiveUpdates } from "../../actors/runtime/bus/live.ts";
import type { ActorClient } from "../../actors/runtime/calls/actor-client.ts";
import type { BlobStore } from "../../actors/runtime/store/blob-store.ts";
import { NO_APP } from "../../schemas/apps/outgoing-webhook.ts";
import { CRAWL_DISALLOWED_TEXT } from "../../schemas/crawl/content-signal.ts";
import { crawlJob } from "../../schemas/crawl/crawl-job.ts";
import { crawlList } from "../../schemas/crawl/crawl-list.ts";
import type { CrawlRequest } from "../../schemas/crawl/http/crawl.ts";
import { site } from "../../schemas/crawl/site.ts";
import { crawlRequestBlob, encryptCrawlRequest } from "../../schemas/crawl/stored-request.ts";
import { ActorError, isRefusal } from "../../schemas/errors.ts";
import { browserTime } from "../../schemas/rendering/browser-time.ts";
import { requestKeyName } from "../../schemas/rendering/request-key.ts";
import { planOf } from "./crawl-wire.ts";

/** How long a start waits for an unknown robots.txt, as the API states, and how often it asks. */
const CRAWL_START_WAIT_MS = 5_000;
const CRAWL_CONSULT_MS = 500;
/**
 * Lifetime of a stored request that no purge removes: longer than the job's 7 days and the 14 days of its results.
 */
const CRAWL_REQUEST_KEPT_S = 22 * 86_400;

interface CrawlStarting {
  actors: ActorClient;
  blobs: Pick<BlobStore, "put" | "remove">;
  secrets: Pick<SecretBox, "seal">;
  live: LiveUpdates;
  /** Browser time per account and UTC day; 0 means no limit. */
  browserMsPerDay: number;
  /** Returns the bytes that an account's crawls may store. 0, or no function: no limit. */
  crawlBytesMax?: (() => number) | undefined;
  /** Whether the operator configured a model for the format json. */
  hasModel: boolean;
  now: () => number;
  /** How long a start waits for an unknown robots.txt, in milliseconds. */
  waitMs?: number;
}

/** Resolves with the job's id when the job is durable. */
export async function startCrawl(
  starting: CrawlStarting,
  accountId: string,
  request: CrawlRequest,
  signal: AbortSignal,
): Promise<string> {
  const { actors, blobs, secrets, browserMsPerDay, crawlBytesMax = () => 0 } = starting;
  checkModel(request, starting.hasModel);
  checkModifiedSince(request, starting.now());
  if (request.render) {
    const limit = { limitMs: browserMsPerDay };
    await actors.call(browserTime, accountId, "admit", limit, { signal });
  }
  // The account's place is reserved before the site is consulted. Otherwise an account could make sites fetch any
  // number of robots.txt. The reservation lasts for some time even if the crawl does not start.
  const bytesMax = crawlBytesMax();
  await actors.call(crawlList, accountId, "admit", { bytesMax }, { signal });
  await consultSite(starting, accountId, request, signal);
  const id = randomBytes(16).toString("hex");
  // The request is encrypted, because it may contain cookies, passwords and header fields that open accounts
  // elsewhere.
  const content = await encryptCrawlRequest(Buffer.from(JSON.stringify(request)), (key) =>
    secrets.seal(key, { accountId, app: NO_APP, name: requestKeyName(id) }),
  );
  const name = crawlRequestBlob(id);
  const removeRequest = async (error: unknown): Promise<never> => {
    await blobs.remove(name).catch(() => {}); // It has a time to live.
    throw error;
  };
  const storage = { ttlS: CRAWL_REQUEST_KEPT_S, signal };
  const stored = await blobs.put(name, content, storage).catch(removeRequest);
  const start = { account: accountId, plan: planOf(request), request: stored, bytesMax };
  // From here on the start no longer depends on the client: a job starts completely or not at all.
  await actors.call(crawlJob, id, "start", start).catch((error: unknown) => {
    // No job removes the request of a refused start. After other errors, the job may have started.
    if (isRefusal(error)) return removeRequest(error);
    throw error;
  });
  return id;
}

/**
 * Throws a refusal if the site's content signal forbids the crawl. If the robots.txt is not known within `waitMs`,
 * the crawl starts without this check.
 */
async function consultSite(
  { actors, live, waitMs = CRAWL_START_WAIT_MS }: CrawlStarting,
  accountId: string,
  request: CrawlRequest,
  signal: AbortSignal,
): Promise<void> {
  const { host, protocol } = new URL(request.url);
  const scheme = protocol === "https:" ? ("https" as const) : ("http" as const);
  const query = { scheme, intent: planOf(request).intent, account: accountId };
  const consult = async () => {
    const answer = await actors.call(site, host, "consult", query, { signal });
    if (!answer.known) return false;
    if (answer.refusal !== undefined)
      throw new ActorError("crawl_disallowed", CRAWL_DISALLOWED_TEXT);
    return true;
  };
  if (await consult()) return;
  const giveUpAt = performance.now() + waitMs;
  const watching = new AbortController();
  const updates = await live.subscribe(site, host, AbortSignal.any([signal, watching.signal]));
  try {
    const iterator = updates[Symbol.asyncIterator]();
    let update = iterator.next();
    // A live message may be lost, so the loop also polls.
    for (let known = await consult(); !known; known = await consult()) {
      const leftMs = giveUpAt - performance.now();
      if (leftMs <= 0) return;
      const shown = await eitherOf(update, Math.min(CRAWL_CONSULT_MS, leftMs), signal);
      if (shown) update = iterator.next();
    }
  } finally {
    watching.abort();
  }
}

/** Resolves with whether `coming` resolved within the time. Rejects with the signal's reason. */
async function eitherOf(
  coming: Promise<unknown>,
  ms: number,
  signal: AbortSignal,
): Promise<boolean> {
  const waiting = new AbortController();
  const timer = sleep(ms, false, { signal: AbortSignal.any([signal, waiting.signal]) });
  try {
    return await Promise.race([coming.then(() => true), timer]);
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  } finally {
    waiting.abort();
    timer.catch(() => {}); // The race above has handled its error.
  }
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

/** Routes that start, list, read, follow and cancel crawls. */
import type { Response } from "express";
import type { z } from "zod";
import type { SecretBox } from "../../actors/apps/lib/app-secrets/secret-box.ts";
import type { LiveUpdates } from "../../actors/runtime/bus/live.ts";
import type { ActorClient } from "../../actors/runtime/calls/actor-client.ts";
import type { BlobStore } from "../../actors/runtime/store/blob-store.ts";
import { AccountPath } from "../../schemas/account/http/accounts.ts";
import { crawlJob } from "../../schemas/crawl/crawl-job.ts";
import { type CrawlListEntry, crawlList } from "../../schemas/crawl/crawl-list.ts";
import { CrawlRequest } from "../../schemas/crawl/http/crawl.ts";
import {
  CancelledCrawl,
  CrawlPath,
  CrawlQuery,
  CrawlsQuery,
  StartedCrawl,
  WireCrawl,
  WireCrawlEntry,
} from "../../schemas/crawl/http/crawl-answers.ts";
import { CRAWL_READ_MS_MAX, CRAWL_REQUEST_BYTES_MAX } from "../../schemas/crawl/limits.ts";
import { ActorError } from "../../schemas/errors.ts";
import { nothing } from "../../schemas/http/nothing.ts";
import { CrawlCallQuery } from "../../schemas/rendering/http/rendering.ts";
import { Id } from "../../schemas/values.ts";
import { blameCursor } from "../http/blame-cursor.ts";
import { callFew } from "../http/call-few.ts";
import { defineRoute, type Route, type RouteRequest, type Tag } from "../http/route.ts";
import { writeAnswer } from "../http/write-answer.ts";
import { CrawlEvents } from "./crawl-events.ts";
import { readCrawl } from "./crawl-reader.ts";
import { CrawlReads } from "./crawl-reads.ts";
import { wireEntry } from "./crawl-wire.ts";
import { startCrawl } from "./start-crawl.ts";

const CRAWLS_TAG: Tag = {
  name: "Crawls",
  description: "Crawls of whole sites",
};

const CRAWLS = "/accounts/{account_id}/browser-rendering/crawl";
/** The newer name of the same path. */
const ALIAS = "/accounts/{account_id}/browser-run/crawl";

interface CrawlRouteParts {
  actors: ActorClient;
  blobs: Pick<BlobStore, "put" | "get" | "remove">;
  /** Seals the keys of stored requests. */
  secrets: Pick<SecretBox, "seal">;
  live: LiveUpdates;
  browserMsPerDay: number;
  /** Returns the bytes that an account's crawls may store. 0, or no function: no limit. */
  crawlBytesMax?: (() => number) | undefined;
  /** Whether the operator configured a model for the format json. */
  hasModel: boolean;
  now: () => number;
  stopping: AbortSignal;
  /** Timeout of a response with records, in milliseconds. */
  readMs?: number;
}

type CrawlAsked<Q = unknown> = RouteRequest<z.output<typeof CrawlPath>, Q>;

const START_CRAWL = {
  tag: CRAWLS_TAG,
  method: "post",
  path: CRAWLS,
  alias: ALIAS,
  id: "startCrawl",
  summary: "Start a crawl of a site that keeps its pages as HTML, Markdown or data",
  permissions: ["browser-rendering.write"],
  parameters: AccountPath,
  query: CrawlCallQuery,
  body: { schema: CrawlRequest, bytesMax: CRAWL_REQUEST_BYTES_MAX },
  refusals: ["crawl_disallowed", "limit_reached", "browser_time_exceeded", "storage_full"],
  answer: { result: StartedCrawl },
} as const;

const LIST_CRAWLS = {
  tag: CRAWLS_TAG,
  method: "get",
  path: CRAWLS,
  alias: ALIAS,
  id: "listCrawls",
  summary: "List the account's crawls, newest first",
  permissions: ["browser-rendering.read"],
  parameters: AccountPath,
  query: CrawlsQuery,
  answer: { result: WireCrawlEntry.array(), paged: "cursor" },
} as const;

const GET_CRAWL = {
  tag: CRAWLS_TAG,
  method: "get",
  path: `${CRAWLS}/{job_id}`,
  alias: `${ALIAS}/{job_id}`,
  id: "getCrawl",
  summary: "Get a crawl's progress and its records with their content",
  permissions: ["browser-rendering.read"],
  parameters: CrawlPath,
  query: CrawlQuery,
  answer: { streamed: WireCrawl },
} as const;

const CANCEL_CRAWL = {
  tag: CRAWLS_TAG,
  method: "delete",
  path: `${CRAWLS}/{job_id}`,
  alias: `${ALIAS}/{job_id}`,
  id: "cancelCrawl",
  summary: "Cancel a running crawl; its records are kept",
  permissions: ["browser-rendering.write"],
  parameters: CrawlPath,
  query: nothing,
  refusals: ["conflict"],
  answer: { result: CancelledCrawl },
} as const;

const FOLLOW_CRAWL = {
  tag: CRAWLS_TAG,
  method: "get",
  path: `${CRAWLS}/{job_id}/events`,
  alias: `${ALIAS}/{job_id}/events`,
  id: "followCrawl",
  summary: "Follow a crawl by Server-Sent Events: status, page, progress, missed, finished",
  permissions: ["browser-rendering.read"],
  parameters: CrawlPath,
  query: nothing,
  answer: {
    mediaType: "text/event-stream",
    description: `status: the crawl when the stream begins, without records. page: a page that has changed since, with url, \
status and httpStatus. progress: total, finished and skipped. missed: pages were left out because the client reads too slowly \
or the bus failed, with their number where it is known. finished: the ended crawl; the stream closes after it.`,
  },
} as const;

export function crawlRoutes(parts: CrawlRouteParts): Route[] {
  return [
    defineRoute({ ...START_CRAWL, handle: start(parts) }),
    defineRoute({ ...LIST_CRAWLS, handle: list(parts) }),
    defineRoute({ ...GET_CRAWL, handle: read(parts, new CrawlReads()) }),
    defineRoute({ ...CANCEL_CRAWL, handle: cancel(parts) }),
    defineRoute({ ...FOLLOW_CRAWL, handle: follow(new CrawlEvents(parts)) }),
  ];
}

function start(parts: CrawlRouteParts) {
  return async ({ caller, body, signal }: RouteRequest<unknown, unknown, CrawlRequest>) => ({
    result: await startCrawl(parts, caller.accountId, body, signal),
  });
}

function list({ actors }: CrawlRouteParts) {
  return async ({ caller, query, signal }: RouteRequest<unknown, CrawlsQuery>) => {
    const { cursor, status, limit: count } = query;
    const page = { count, ...(cursor !== undefined && { cursor }), ...(status && { status }) };
    const listed = await actors
      .call(crawlList, caller.accountId, "list", page, { signal })
      .catch(blameCursor);
    const counted = await callFew(listed.entries, (entry) =>
      withCounts(actors, caller.accountId, entry, signal),
    );
    const result = counted.map(wireEntry);
    const next = listed.cursor === undefined ? {} : { cursor: listed.cursor };
    return { result, resultInfo: { count: result.length, ...next } };
  };
}

/** Adds the counts of a running job, which the list learns only at the job's end. */
async function withCounts(
  actors: ActorClient,
  account: string,
  entry: CrawlListEntry,
  signal: AbortSignal,
): Promise<CrawlListEntry> {
  if (entry.total !== undefined) return entry;
  try {
    const { total, finished, skipped } = await actors.call(
      crawlJob,
      entry.id,
      "get",
      { account },
      { signal },
    );
    return { ...entry, total, finished, skipped };
  } catch (error) {
    // If one job is unavailable or has just expired, the list is still shown, without the counts of that job.
    if (error instanceof ActorError) return entry;
    throw error;
  }
}

function read(parts: CrawlRouteParts, reads: CrawlReads) {
  const { readMs = CRAWL_READ_MS_MAX } = parts;
  return async (asked: CrawlAsked<CrawlQuery>, response: Response) => {
    const { query, caller } = asked;
    const release = reads.reserve(caller.accountId);
    const signal = AbortSignal.any([asked.signal, AbortSignal.timeout(readMs)]);
    try {
      const reading = { ...query, account: caller.accountId, job: jobOf(asked), signal };
      const chunks = await readCrawl(parts, reading).catch(blameCursor);
      response.set("Content-Type", "application/json; charset=utf-8");
      await writeAnswer(chunks, response, { bytes: null, signal });
    } finally {
      release();
    }
  };
}

function cancel({ actors }: CrawlRouteParts) {
  return async (asked: CrawlAsked) => {
    const { caller, signal } = asked;
    const job = jobOf(asked);
    await actors.call(crawlJob, job, "cancel", { account: caller.accountId }, { signal });
    return { result: { job_id: job, message: "Crawl cancelled" } };
  };
}

function follow(events: CrawlEvents) {
  return async (asked: CrawlAsked, response: Response) => {
    const { caller, signal, isStillAllowed } = asked;
    const following = { job: jobOf(asked), accountId: caller.accountId, isStillAllowed };
    await events.follow({ ...following, signal }, response);
  };
}

/** Returns the job id in the path. Throws `not_found` if the text has not the form of an id. */
function jobOf({ parameters }: CrawlAsked): string {
  const { success, data } = Id.safeParse(parameters.job_id);
  if (success) return data;
  throw new ActorError("not_found", "Cannot find crawl: unknown here, or another account's");
}

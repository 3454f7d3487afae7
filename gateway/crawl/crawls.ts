/** Crawls: started, listed, read, followed as they go on, cancelled. */
import type { Response } from "express";
import type { z } from "zod";
import type { ActorClient } from "../../actors/runtime/actor-client.ts";
import type { BlobStore } from "../../actors/runtime/blob-store.ts";
import type { LiveUpdates } from "../../actors/runtime/live.ts";
import { AccountPath } from "../../schemas/account/http/accounts.ts";
import { crawlJob } from "../../schemas/crawl/crawl-job.ts";
import { crawlList } from "../../schemas/crawl/crawl-list.ts";
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
import { RenderQuery } from "../../schemas/rendering/http/rendering.ts";
import { Id } from "../../schemas/values.ts";
import { blameCursor } from "../http/blame-cursor.ts";
import { type Asked, defineRoute, type Route } from "../http/route.ts";
import { writeAnswer } from "../http/write-answer.ts";
import { CrawlEvents } from "./crawl-events.ts";
import { readCrawl } from "./crawl-reader.ts";
import { CrawlReads } from "./crawl-reads.ts";
import { wireEntry } from "./crawl-wire.ts";
import { startCrawl } from "./start-crawl.ts";

const CRAWLS = "/accounts/{account_id}/browser-rendering/crawl";
/** The same under a younger name. */
const ALIAS = "/accounts/{account_id}/browser-run/crawl";

interface CrawlRouteParts {
  actors: ActorClient;
  blobs: Pick<BlobStore, "put" | "get">;
  live: LiveUpdates;
  browserMsPerDay: number;
  /** Whether the service has a model of its own for the format json. */
  hasModel: boolean;
  now: () => number;
  stopping: AbortSignal;
  /** How long an answer with records may take. */
  readMs?: number;
}

type CrawlAsked<Q = unknown> = Asked<z.output<typeof CrawlPath>, Q>;

export function crawlRoutes(parts: CrawlRouteParts): Route[] {
  const { actors } = parts;
  const events = new CrawlEvents(parts);
  const reads = new CrawlReads();
  const shared = { tag: "Crawls" };
  return [
    defineRoute({
      ...shared,
      method: "post",
      path: CRAWLS,
      alias: ALIAS,
      id: "startCrawl",
      summary: "Walk a site and keep its pages as HTML, Markdown or data",
      permissions: ["browser-rendering.write"],
      parameters: AccountPath,
      query: RenderQuery,
      body: { schema: CrawlRequest, bytesMax: CRAWL_REQUEST_BYTES_MAX },
      refusals: ["crawl_disallowed", "limit_reached", "browser_time_exceeded", "storage_full"],
      answer: { result: StartedCrawl },
      handle: start,
    }),
    defineRoute({
      ...shared,
      method: "get",
      path: CRAWLS,
      alias: ALIAS,
      id: "listCrawls",
      summary: "The account's crawls, newest first",
      permissions: ["browser-rendering.read"],
      parameters: AccountPath,
      query: CrawlsQuery,
      answer: { result: WireCrawlEntry.array(), paged: "cursor" },
      handle: list,
    }),
    defineRoute({
      ...shared,
      method: "get",
      path: `${CRAWLS}/{job_id}`,
      alias: `${ALIAS}/{job_id}`,
      id: "getCrawl",
      summary: "How far a crawl is, and the pages it has found, with their content",
      permissions: ["browser-rendering.read"],
      parameters: CrawlPath,
      query: CrawlQuery,
      answer: { streamed: WireCrawl },
      handle: read,
    }),
    defineRoute({
      ...shared,
      method: "delete",
      path: `${CRAWLS}/{job_id}`,
      alias: `${ALIAS}/{job_id}`,
      id: "cancelCrawl",
      summary: "Cancel a crawl that runs; what it has found stays",
      permissions: ["browser-rendering.write"],
      parameters: CrawlPath,
      query: nothing,
      refusals: ["conflict"],
      answer: { result: CancelledCrawl },
      handle: cancel,
    }),
    defineRoute({
      ...shared,
      method: "get",
      path: `${CRAWLS}/{job_id}/events`,
      alias: `${ALIAS}/{job_id}/events`,
      id: "followCrawl",
      summary: "Server-Sent Events as a crawl goes on: status, page, progress, at the end finished",
      permissions: ["browser-rendering.read"],
      parameters: CrawlPath,
      query: nothing,
      answer: {
        mediaType: "text/event-stream",
        description:
          "status: the crawl as it stands when the stream begins, without records, which hold what came before; page: a page that has changed since, with url, status and httpStatus; progress: total, finished and skipped; missed: pages were left out, for a client that reads too slowly or by a fault of the bus, and how many where that is known; finished: the crawl as it ended, and the stream's end",
      },
      handle: follow,
    }),
  ];

  async function start({ caller, body, signal }: Asked<unknown, unknown, CrawlRequest>) {
    return { result: await startCrawl(parts, caller.accountId, body, signal) };
  }

  async function list({ caller, query, signal }: Asked<unknown, CrawlsQuery>) {
    const { cursor, status, limit: count } = query;
    const asked = { count, ...(cursor !== undefined && { cursor }), ...(status && { status }) };
    const listed = await actors
      .call(crawlList, caller.accountId, "list", asked, { signal })
      .catch(blameCursor);
    const result = listed.entries.map(wireEntry);
    const next = listed.cursor === undefined ? {} : { cursor: listed.cursor };
    return { result, resultInfo: { count: result.length, ...next } };
  }

  async function read(asked: CrawlAsked<CrawlQuery>, response: Response) {
    const { query, caller } = asked;
    const { readMs = CRAWL_READ_MS_MAX } = parts;
    const release = reads.take(caller.accountId);
    const signal = AbortSignal.any([asked.signal, AbortSignal.timeout(readMs)]);
    try {
      const reading = { ...query, account: caller.accountId, job: jobOf(asked), signal };
      const chunks = await readCrawl(parts, reading).catch(blameCursor);
      response.set("Content-Type", "application/json; charset=utf-8");
      await writeAnswer(chunks, response, { bytes: null, signal });
    } finally {
      release();
    }
  }

  async function cancel(asked: CrawlAsked) {
    const { caller, signal } = asked;
    const job = jobOf(asked);
    await actors.call(crawlJob, job, "cancel", { account: caller.accountId }, { signal });
    return { result: { job_id: job, message: "Crawl cancelled" } };
  }

  async function follow(asked: CrawlAsked, response: Response) {
    const { caller, signal } = asked;
    await events.follow({ job: jobOf(asked), caller, signal }, response);
  }
}

/** Whatever is no id names no job. */
function jobOf({ parameters }: CrawlAsked): string {
  const { success, data } = Id.safeParse(parameters.job_id);
  if (success) return data;
  throw new ActorError("not_found", "Cannot find crawl: unknown here, or another account's");
}

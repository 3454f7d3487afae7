/**
 * Messages of the actor crawl job, and the data in them: the plan, the records and the progress of a job. The key is
 * the job's id.
 */
import { z } from "zod";
import { defineContract } from "../contract.ts";
import { EpochMs, Id } from "../values.ts";
import {
  CONTENT_TYPE_CHARS_MAX,
  CRAWL_DEPTH_MAX,
  CRAWL_LIST_MAX,
  CRAWL_NEWS_PAGES_MAX,
  CRAWL_PAGES_MAX,
  CRAWL_PATTERN_CHARS_MAX,
  CRAWL_PATTERNS_MAX,
  CRAWL_URL_CHARS_MAX,
  PAGE_LINKS_MAX,
  PAGE_TITLE_CHARS_MAX,
  RECORD_REASON_CHARS_MAX,
  REPORT_PAGES_MAX,
  ROBOTS_SITEMAPS_MAX,
  SITEMAP_REPORT_URLS_MAX,
  TURN_REQUESTS_MAX,
} from "./limits.ts";
import { CrawlIntent, Scheme } from "./site.ts";

const Url = z.string().min(1).max(CRAWL_URL_CHARS_MAX);
const Pattern = z.string().min(1).max(CRAWL_PATTERN_CHARS_MAX);
const Index = z.int().min(0);
const Reason = z.string().min(1).max(RECORD_REASON_CHARS_MAX);
/** Bytes that the blobs of a page take in their stream. Workers of older versions do not report it. */
const StoredBytes = z.int().min(0).optional();

export const CrawlFormat = z.enum(["html", "markdown", "json"]);
export type CrawlFormat = z.infer<typeof CrawlFormat>;

/**
 * The fields of a request that decide which pages the crawl has. The whole request is a blob, since it may be large.
 */
export const CrawlPlan = z.object({
  url: Url,
  limit: z.int().min(1).max(CRAWL_PAGES_MAX),
  depth: z.int().min(0).max(CRAWL_DEPTH_MAX),
  source: z.enum(["all", "sitemaps", "links"]),
  formats: z.array(CrawlFormat).min(1),
  render: z.boolean(),
  modifiedSince: z.int().min(0).optional(),
  options: z.object({
    includeExternalLinks: z.boolean().optional(),
    includeSubdomains: z.boolean().optional(),
    includePatterns: z.array(Pattern).max(CRAWL_PATTERNS_MAX).optional(),
    excludePatterns: z.array(Pattern).max(CRAWL_PATTERNS_MAX).optional(),
  }),
  intent: CrawlIntent,
});
export type CrawlPlan = z.infer<typeof CrawlPlan>;

export const CrawlStatus = z.enum([
  "running",
  "completed",
  "errored",
  "cancelled_due_to_timeout",
  "cancelled_due_to_limits",
  "cancelled_by_user",
]);
export type CrawlStatus = z.infer<typeof CrawlStatus>;

export const RecordStatus = z.enum([
  "queued",
  "completed",
  "errored",
  "disallowed",
  "skipped",
  "cancelled",
]);
export type RecordStatus = z.infer<typeof RecordStatus>;

/** Metadata of a fetched page. */
export const RecordMetadata = z.object({
  /** HTTP status. A failed fetch has none. */
  status: z.int().min(100).max(999).optional(),
  title: z.string().max(PAGE_TITLE_CHARS_MAX).optional(),
  /** Address of the page after redirects. */
  url: Url,
  lastModifiedAt: EpochMs.optional(),
  contentType: z.string().max(CONTENT_TYPE_CHARS_MAX).optional(),
  /** The body was longer than the limit and is cut. */
  truncated: z.boolean().optional(),
  /** The page asks search engines not to index it. */
  noindex: z.boolean().optional(),
  /** Time of the original fetch, where the page came from the account's cache. */
  cachedAt: EpochMs.optional(),
});
export type RecordMetadata = z.infer<typeof RecordMetadata>;

/** A part of a record in a blob: JSON members without braces, `"html":"…","markdown":"…"`. */
export const RecordBlob = z.object({ name: z.string(), bytes: z.int().min(0) });
export type RecordBlob = z.infer<typeof RecordBlob>;

export const RecordEntry = z.object({
  index: Index,
  url: Url,
  status: RecordStatus,
  /** Why the record is not completed, or what a completed record lacks. */
  reason: Reason.optional(),
  metadata: RecordMetadata.optional(),
  blobs: z.array(RecordBlob).max(2),
});
export type RecordEntry = z.infer<typeof RecordEntry>;

export const CrawlSummary = z.object({
  status: CrawlStatus,
  browserMs: z.int().min(0),
  /**
   * Numbers of pages. `total` counts admitted pages without skipped ones. `finished` counts those of them that are
   * neither queued nor cancelled. `skipped` counts skipped addresses and pages.
   */
  total: z.int().min(0),
  finished: z.int().min(0),
  skipped: z.int().min(0),
  createdAt: EpochMs,
  endedAt: EpochMs.optional(),
  /** Problems of the job as a whole. */
  messages: z.array(z.string()),
});
export type CrawlSummary = z.infer<typeof CrawlSummary>;

/** The outcome of one request of a turn. Every request has exactly one, except those that were never made. */
export const PageOutcome = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("fetched"),
    index: Index,
    metadata: RecordMetadata,
    blobs: z.array(RecordBlob).max(2),
    /** Name of the blob from which the `json` task reads the page's text. `blobs` need not list this blob. */
    jsonSource: z.string().optional(),
    /**
     * Absolute addresses of the links to follow, in the order of the page. Empty if the page forbids following its
     * links.
     */
    links: z.array(Url).max(PAGE_LINKS_MAX),
    /** Present for an HTTP status from 400, and where a format could not be made. */
    reason: Reason.optional(),
    browserMs: z.int().min(0),
    storedBytes: StoredBytes,
  }),
  /** The page redirects to `to`. If the job follows the redirect, it requests this address in a turn of its host. */
  z.object({
    kind: z.literal("redirected"),
    index: Index,
    to: Url,
    status: z.int(),
    browserMs: z.int().min(0),
  }),
  z.object({
    kind: z.literal("disallowed"),
    index: Index,
    reason: Reason,
    /** robots.txt did not forbid the page: the host did not respond to the request for its robots.txt. */
    unreachable: z.literal(true).optional(),
  }),
  z.object({
    kind: z.literal("skipped"),
    index: Index,
    reason: Reason,
    metadata: RecordMetadata.optional(),
    /** Links of a page that is older than the crawl wants. The linked pages may be newer. */
    links: z.array(Url).max(PAGE_LINKS_MAX).optional(),
    /** Browser time used for the page, in milliseconds. */
    browserMs: z.int().min(0).optional(),
  }),
  /** The fetch failed, or the host asked for a pause. `retry` says whether another attempt makes sense. */
  z.object({
    kind: z.literal("failed"),
    index: Index,
    reason: Reason,
    retry: z.boolean(),
    metadata: RecordMetadata.optional(),
    blobs: z.array(RecordBlob).max(2),
    browserMs: z.int().min(0),
    storedBytes: StoredBytes,
    /** The browser, or the job's browser context, ended during the load. Any page that was in it may be the cause. */
    browserLost: z.literal(true).optional(),
  }),
  /** The page was not loaded because the account has no browser time left. */
  z.object({ kind: z.literal("out_of_time"), index: Index, reason: Reason }),
]);
export type PageOutcome = z.infer<typeof PageOutcome>;

export const SitemapUrl = z.object({
  url: Url,
  lastModifiedAt: EpochMs.optional(),
  priority: z.number().min(0).max(1).optional(),
});
export type SitemapUrl = z.infer<typeof SitemapUrl>;

/** A live update of a job, for clients that follow it. */
export const CrawlNews = z.object({
  ...CrawlSummary.pick({ status: true, total: true, finished: true, skipped: true }).shape,
  /** Pages whose status has changed. */
  pages: z
    .array(
      z.object({
        index: Index,
        url: Url,
        status: RecordStatus,
        httpStatus: RecordMetadata.shape.status,
      }),
    )
    .max(CRAWL_NEWS_PAGES_MAX),
});
export type CrawlNews = z.infer<typeof CrawlNews>;

const Nothing = z.object({});
const Asker = z.object({ account: Id });

export const crawlJob = defineContract({
  kind: "crawl-job",
  live: CrawlNews,
  messages: {
    start: {
      input: z.object({
        account: Id,
        plan: CrawlPlan,
        request: RecordBlob,
        /** Bytes that the account's crawls may store. 0 or absent: no limit. */
        bytesMax: z.int().min(0).optional(),
        /** Hosts at which the job may want requests at the same time, as its account's list has said. */
        hostsMax: z.int().min(1).optional(),
      }),
      reply: Nothing,
    },
    /** Returns the summary. A job of another account is unknown. */
    get: { input: Asker, reply: CrawlSummary },
    /**
     * Lists records without their bodies. Without a status, or with `queued`, they are in discovery order. With
     * another status, records that settle during the listing come after the others.
     */
    list: {
      input: z.object({
        account: Id,
        cursor: z.string().max(128).optional(),
        status: RecordStatus.optional(),
        count: z.int().min(1).max(CRAWL_LIST_MAX),
      }),
      reply: z.object({
        summary: CrawlSummary,
        /** Each entry has the cursor that continues after it. */
        entries: z.array(z.object({ entry: RecordEntry, cursor: z.string() })),
        more: z.boolean(),
      }),
    },
    /** Cancels the job. Queued pages are cancelled before the reply. Refuses with `conflict` if the job has ended. */
    cancel: { input: Asker, reply: Nothing },

    /** From a site: grants a turn with up to `requests` requests. */
    turnGranted: {
      input: z.object({
        host: z.string().min(1),
        turn: Id,
        requests: z.int().min(1).max(TURN_REQUESTS_MAX),
      }),
    },
    /**
     * From a site: its robots.txt is known, with these sitemaps. `refusal` is present where the content signal
     * forbids the crawl.
     */
    robotsLearned: {
      input: z.object({
        host: z.string().min(1),
        scheme: Scheme,
        sitemaps: z.array(Url).max(ROBOTS_SITEMAPS_MAX),
        /** The file is longer than the limit. */
        truncated: z.literal(true).optional(),
        refusal: Reason.optional(),
      }),
    },
    /** From a site that cannot accept this job because the site has too many. The job must ask again later. */
    siteFull: { input: z.object({ host: z.string().min(1) }) },
    /** From a worker: outcomes of a turn's pages, while they arrive. */
    turnReported: {
      input: z.object({
        host: z.string(),
        turn: Id,
        outcomes: z.array(PageOutcome).max(REPORT_PAGES_MAX),
      }),
    },
    /** From a worker: a slice of a sitemap's addresses. `nested` lists the sitemaps of an index. */
    sitemapRead: {
      input: z.object({
        turn: Id,
        url: Url,
        urls: z.array(SitemapUrl).max(SITEMAP_REPORT_URLS_MAX),
        nested: z.array(SitemapUrl).max(SITEMAP_REPORT_URLS_MAX),
        nesting: z.int().min(0),
        /** Present in the last slice: whether reading failed, and why. */
        end: z.object({ failed: Reason.optional(), retry: z.boolean() }).optional(),
      }),
    },
    /** From a worker: the turn has ended. The job requeues all requests that the turn has not reported. */
    turnEnded: {
      input: z.object({
        host: z.string(),
        turn: Id,
        failed: Reason.optional(),
        /** A fault of this platform that lasts. No page is its cause. */
        fault: Reason.optional(),
      }),
    },
    jsonExtracted: {
      input: z.object({
        index: Index,
        blob: RecordBlob.optional(),
        /** Why the page has no JSON. */
        reason: Reason.optional(),
        storedBytes: StoredBytes,
      }),
    },
    /** From the account's list of crawls: the account's crawls store more than they may. Ends the job. */
    accountFull: { input: z.object({ reason: Reason }) },
    /** From the job itself: continues with addresses in the backlog. */
    admitMore: { input: Nothing },
    /** Reminder: resumes the hosts that the job has paused. */
    askAgain: { input: Nothing },
    /** Reminders: `timeOut` comes at the end of the job's lifetime, `expire` when its results are no longer kept. */
    timeOut: { input: Nothing },
    expire: { input: Nothing },
  },
});

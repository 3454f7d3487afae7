/** The contract of a crawl job: what was asked for, which pages there are, how far it has come. The key is its id. */
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

export const CrawlFormat = z.enum(["html", "markdown", "json"]);
export type CrawlFormat = z.infer<typeof CrawlFormat>;

/** What of a crawl's request decides which pages it has; the whole request is a blob, since it may be large. */
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

/** Of a page that was fetched. */
export const RecordMetadata = z.object({
  /** HTTP status; a failed fetch has none. */
  status: z.int().min(100).max(999).optional(),
  title: z.string().max(PAGE_TITLE_CHARS_MAX).optional(),
  /** Where it was found, after redirects. */
  url: Url,
  lastModifiedAt: EpochMs.optional(),
  contentType: z.string().max(CONTENT_TYPE_CHARS_MAX).optional(),
  /** The body went past the bound and was cut there. */
  truncated: z.boolean().optional(),
  /** The page asks search engines not to show it. */
  noindex: z.boolean().optional(),
  /** It came from the account's page cache: when it was fetched. */
  cachedAt: EpochMs.optional(),
});
export type RecordMetadata = z.infer<typeof RecordMetadata>;

/** A piece of a record kept as a blob: JSON members without braces, `"html":"…","markdown":"…"`. */
export const RecordBlob = z.object({ name: z.string(), bytes: z.int().min(0) });
export type RecordBlob = z.infer<typeof RecordBlob>;

export const RecordEntry = z.object({
  index: Index,
  url: Url,
  status: RecordStatus,
  /** Why it is not completed; of a completed one, what is missing in it. */
  reason: Reason.optional(),
  metadata: RecordMetadata.optional(),
  blobs: z.array(RecordBlob).max(2),
});
export type RecordEntry = z.infer<typeof RecordEntry>;

export const CrawlSummary = z.object({
  status: CrawlStatus,
  browserMs: z.int().min(0),
  /** Of pages that were admitted; skipped ones are in neither, and `finished` has none that is queued or cancelled. */
  total: z.int().min(0),
  finished: z.int().min(0),
  skipped: z.int().min(0),
  createdAt: EpochMs,
  endedAt: EpochMs.optional(),
  /** What went wrong with the job as a whole. */
  messages: z.array(z.string()),
});
export type CrawlSummary = z.infer<typeof CrawlSummary>;

/** How one request of a turn ended. Exactly one comes for each, save those that were never made. */
export const PageOutcome = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("fetched"),
    index: Index,
    metadata: RecordMetadata,
    blobs: z.array(RecordBlob).max(2),
    /** Where json is wanted: the blob whose members have the page's Markdown, for the task `json`; it may be none of `blobs`. */
    jsonSource: z.string().optional(),
    /** Absolute addresses that may be followed, in the page's order; empty where the page forbids it. */
    links: z.array(Url).max(PAGE_LINKS_MAX),
    /** Set when the page's HTTP status is 400 or more, or a format could not be made. */
    reason: Reason.optional(),
    browserMs: z.int().min(0),
  }),
  /** A redirect is a request of its own: its target waits for a turn at its host. */
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
    /** No ban: the host gave no answer over HTTP when it was asked for its robots.txt. */
    unreachable: z.literal(true).optional(),
  }),
  z.object({
    kind: z.literal("skipped"),
    index: Index,
    reason: Reason,
    metadata: RecordMetadata.optional(),
    /** Of a page that is older than what is wanted: what it leads to may be newer. */
    links: z.array(Url).max(PAGE_LINKS_MAX).optional(),
    /** Of a page that the browser asked for, and that was not modified. */
    browserMs: z.int().min(0).optional(),
  }),
  /** The fetch failed, or the host asked to wait; `retry` says whether another try makes sense. */
  z.object({
    kind: z.literal("failed"),
    index: Index,
    reason: Reason,
    retry: z.boolean(),
    metadata: RecordMetadata.optional(),
    blobs: z.array(RecordBlob).max(2),
    browserMs: z.int().min(0),
    /** The browser ended under it, or all of the job's pages in it: any page that was in there may be to blame. */
    browserLost: z.literal(true).optional(),
  }),
  /** The account has no browser time left: the page was not loaded. */
  z.object({ kind: z.literal("out_of_time"), index: Index, reason: Reason }),
]);
export type PageOutcome = z.infer<typeof PageOutcome>;

export const SitemapUrl = z.object({
  url: Url,
  lastModifiedAt: EpochMs.optional(),
  priority: z.number().min(0).max(1).optional(),
});
export type SitemapUrl = z.infer<typeof SitemapUrl>;

/** What those who follow a job see of it, as it goes on. */
export const CrawlNews = z.object({
  ...CrawlSummary.pick({ status: true, total: true, finished: true, skipped: true }).shape,
  /** Those whose status is another than before. */
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
      input: z.object({ account: Id, plan: CrawlPlan, request: RecordBlob }),
      reply: Nothing,
    },
    /** Refuses as unknown what belongs to another account. */
    get: { input: Asker, reply: CrawlSummary },
    /** A page of its records in discovery order, without bodies. */
    list: {
      input: z.object({
        account: Id,
        cursor: z.string().max(128).optional(),
        status: RecordStatus.optional(),
        count: z.int().min(1).max(CRAWL_LIST_MAX),
      }),
      reply: z.object({
        summary: CrawlSummary,
        /** Each with the cursor that goes on behind it. */
        entries: z.array(z.object({ entry: RecordEntry, cursor: z.string() })),
        more: z.boolean(),
      }),
    },
    /** Queued pages are cancelled before the answer. Refuses as a conflict a job that has ended. */
    cancel: { input: Asker, reply: Nothing },

    /** From a site: so many requests may be made there. */
    turnGranted: {
      input: z.object({
        host: z.string().min(1),
        turn: Id,
        requests: z.int().min(1).max(TURN_REQUESTS_MAX),
      }),
    },
    /** From a site: its robots.txt is known. `refusal`: the content signal forbids the crawl. */
    robotsLearned: {
      input: z.object({
        host: z.string().min(1),
        scheme: Scheme,
        sitemaps: z.array(Url).max(ROBOTS_SITEMAPS_MAX),
        /** The file has more than is read or kept. */
        truncated: z.literal(true).optional(),
        refusal: Reason.optional(),
      }),
    },
    /** From a site that has as many jobs as it can have: what is wanted there has to be asked for again, later. */
    siteFull: { input: z.object({ host: z.string().min(1) }) },
    /** From a worker: pages of a turn, as they come in. */
    turnReported: {
      input: z.object({
        host: z.string(),
        turn: Id,
        outcomes: z.array(PageOutcome).max(REPORT_PAGES_MAX),
      }),
    },
    /** From a worker: addresses of a sitemap, in slices; `nested` are sitemaps an index named. */
    sitemapRead: {
      input: z.object({
        turn: Id,
        url: Url,
        urls: z.array(SitemapUrl).max(SITEMAP_REPORT_URLS_MAX),
        nested: z.array(SitemapUrl).max(SITEMAP_REPORT_URLS_MAX),
        nesting: z.int().min(0),
        /** Present in the last slice: how reading ended, and why when it failed. */
        end: z.object({ failed: Reason.optional(), retry: z.boolean() }).optional(),
      }),
    },
    /** From a worker or its host: what the turn did not report is queued again. */
    turnEnded: {
      input: z.object({
        host: z.string(),
        turn: Id,
        failed: Reason.optional(),
        /** No page is to blame: a fault of ours, which will not be gone at once. */
        fault: Reason.optional(),
      }),
    },
    jsonExtracted: {
      input: z.object({
        index: Index,
        blob: RecordBlob.optional(),
        /** Why there is no JSON. */
        reason: Reason.optional(),
      }),
    },
    /** From the job itself: goes on with addresses that were found and not looked at yet. */
    admitMore: { input: Nothing },
    /** Reminder: sites that were full are asked again. */
    askAgain: { input: Nothing },
    /** Reminders: the job's time is over; the time for which its results are kept is. */
    timeOut: { input: Nothing },
    expire: { input: Nothing },
  },
});

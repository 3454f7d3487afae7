/** Wire shapes of crawls: their records, their progress and their list. */
import { z } from "zod";
import { AccountPath } from "../../account/http/accounts.ts";
import { PAGE_ENTRIES, PAGE_ENTRIES_MAX } from "../../limits.ts";
import { CrawlCallQuery } from "../../rendering/http/rendering.ts";
import { Id } from "../../values.ts";
import { CrawlStatus, RecordStatus } from "../crawl-job.ts";
import { CRAWL_PAGES_MAX } from "../limits.ts";

/** This service never issues a longer cursor, so a longer one is refused like any other unknown cursor. */
const Cursor = z.string().min(1).max(128).optional().describe("Cursor of the previous response");

export const CrawlPath = AccountPath.extend({
  job_id: z.string().describe("The id from the response that started the crawl"),
});

export const CrawlQuery = CrawlCallQuery.pick({ cacheTTL: true }).extend({
  cursor: Cursor,
  limit: z.coerce
    .number()
    .pipe(z.int().min(1).max(CRAWL_PAGES_MAX))
    .optional()
    .describe(
      "Highest number of records. A response ends before 10 MB in any case and then has a cursor",
    ),
  status: RecordStatus.optional().describe("Returns only records with this status"),
});
export type CrawlQuery = z.output<typeof CrawlQuery>;

export const CrawlsQuery = z.strictObject({
  cursor: Cursor,
  limit: z.coerce.number().pipe(z.int().min(1).max(PAGE_ENTRIES_MAX)).default(PAGE_ENTRIES),
  status: CrawlStatus.optional().describe("Returns only crawls with this status"),
});
export type CrawlsQuery = z.output<typeof CrawlsQuery>;

export const StartedCrawl = Id.describe("The crawl's id");

const progressFields = {
  status: CrawlStatus,
  total: z.int().describe("Number of pages found so far, without skipped ones"),
  finished: z.int().describe("Number of completed, errored and disallowed pages"),
  skipped: z.int().describe("Number of addresses found and left out"),
};

const summaryFields = {
  id: Id,
  ...progressFields,
  browserSecondsUsed: z.number(),
  createdAt: z.iso.datetime(),
  endedAt: z.iso.datetime().optional(),
  messages: z.array(z.string()).describe("Problems of the crawl as a whole"),
};

const WireRecord = z.object({
  url: z.string(),
  status: RecordStatus,
  html: z.string().optional(),
  markdown: z.string().optional(),
  json: z.unknown().optional(),
  metadata: z
    .object({
      status: z.int().optional().describe("HTTP status; absent if the fetch failed"),
      title: z.string().optional(),
      url: z.string().describe("Address of the page after redirects"),
      contentType: z.string().optional(),
      lastModifiedAt: z.iso.datetime().optional(),
      cachedAt: z.iso
        .datetime()
        .optional()
        .describe("Time of the original fetch, if the page came from the cache"),
      truncated: z
        .boolean()
        .optional()
        .describe("Whether the body was longer than the limit and was shortened"),
      noindex: z
        .boolean()
        .optional()
        .describe("Whether the page or its X-Robots-Tag asks search engines not to list it"),
    })
    .optional()
    .describe("Metadata of a fetched page"),
  reason: z
    .string()
    .optional()
    .describe("Why the record is not completed, or what a completed record lacks"),
});
export type WireRecord = z.input<typeof WireRecord>;

export const WireCrawlSummary = z.object(summaryFields);
export type WireCrawlSummary = z.input<typeof WireCrawlSummary>;

export const WireCrawl = z.object({
  ...summaryFields,
  records: z.array(WireRecord).describe("Records in the order of their discovery"),
  cursor: z
    .string()
    .optional()
    .describe("Present if there are more entries; repeat the request with it"),
});

export const WireCrawlEntry = z.object({
  id: Id,
  url: z.string(),
  status: CrawlStatus,
  createdAt: z.iso.datetime(),
  endedAt: z.iso.datetime().optional(),
  total: progressFields.total.optional(),
  finished: progressFields.finished.optional(),
  skipped: progressFields.skipped.optional(),
});

export const CancelledCrawl = z.object({ job_id: Id, message: z.string() });

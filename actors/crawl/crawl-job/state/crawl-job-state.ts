/** What is kept of a crawl job: a small state, and rows for all there may be many of. */
import { z } from "zod";
import {
  CrawlPlan,
  CrawlStatus,
  RecordBlob,
  RecordMetadata,
} from "../../../../schemas/crawl/crawl-job.ts";
import { EpochMs } from "../../../../schemas/values.ts";

const Count = z.int().min(0);

/** Rows of one lane of the backlog, from the first to the one before `next`. */
const BacklogLane = z.object({ first: Count, next: Count });

export const CrawlJobState = z.object({
  status: z.enum(["unknown", ...CrawlStatus.options]),
  account: z.string(),
  /** Name of the blob that holds the whole request. */
  request: z.string(),
  createdAt: EpochMs,
  endedAt: EpochMs.optional(),
  messages: z.array(z.string()),
  /** Why a content signal forbids the crawl: what was queued then is disallowed, not cancelled. */
  refusal: z.string().optional(),
  browserMs: Count,
  /** Records there are: the index of the next one. */
  records: Count,
  /** Pages that hold a place under the plan's limit. */
  admitted: Count,
  queued: Count,
  /** Under way, or waiting for their JSON. */
  inFlight: Count,
  /** Pages that were settled so far: each gets the next number. */
  settled: Count,
  total: Count,
  finished: Count,
  disallowed: Count,
  skipped: Count,
  /** Addresses that were skipped and have a record. */
  skippedKept: Count,
  /** Pages that turned out to be skipped after they were admitted. */
  skippedLate: Count.optional(),
  /** Rows that addresses which are known are spread over; KNOWN_ROWS_MAX in jobs of the first release. */
  knownRows: Count.optional(),
  /** Where the crawl starts, and where that is redirected to: whose sitemaps are read. */
  homes: z.array(
    z.object({
      origin: z.string(),
      learned: z.boolean(),
      /** Its /sitemap.xml waits until those that robots.txt names are read, with all they list. */
      guess: z.literal(true).optional(),
    }),
  ),
  /** Sitemaps are numbered; those from `released` on wait for their time, `open` are queued or under way. */
  sitemaps: z.object({ known: Count, released: Count, open: z.array(Count) }),
  /** Pages models are being asked about, and the first and last of those that wait for that. */
  extractions: z
    .object({ asked: Count, first: Count.optional(), last: Count.optional() })
    .optional(),
  /** Hosts at which requests are wanted, and the first and last of those that wait for that. */
  hosts: z
    .object({ open: Count, first: z.string().optional(), last: z.string().optional() })
    .optional(),
  /** Turns that ended by faults of ours since then, without a page between them. */
  faults: z.object({ since: EpochMs, turns: Count }).optional(),
  /** Hosts where nothing is wanted for now (their sites have too many jobs): the reminder `askAgain` is set. */
  fullHosts: z.array(z.string()).optional(),
  /** What was found and not looked at yet. `asked`: a message to ourselves is on its way. */
  backlog: z.object({
    asked: z.boolean(),
    files: BacklogLane,
    sitemap: BacklogLane,
    links: BacklogLane,
  }),
});
export type CrawlJobState = z.infer<typeof CrawlJobState>;

export const INITIAL: CrawlJobState = {
  status: "unknown",
  account: "",
  request: "",
  createdAt: 0,
  messages: [],
  browserMs: 0,
  records: 0,
  admitted: 0,
  queued: 0,
  inFlight: 0,
  settled: 0,
  total: 0,
  finished: 0,
  disallowed: 0,
  skipped: 0,
  skippedKept: 0,
  homes: [],
  sitemaps: { known: 0, released: 0, open: [] },
  backlog: {
    asked: false,
    files: { first: 0, next: 0 },
    sitemap: { first: 0, next: 0 },
    links: { first: 0, next: 0 },
  },
};

/** `plan`: the plan without its patterns, which may be long. */
const PlanRow = z.object({ type: z.literal("plan"), plan: CrawlPlan });
/** `patterns/include/<n>` and `patterns/exclude/<n>`: so many at a time. */
const PatternsRow = z.object({ type: z.literal("patterns"), patterns: z.array(z.string()) });

/** `p/<index>`: a record. */
export const PageRow = z.object({
  type: z.literal("page"),
  url: z.string(),
  /** Where its redirects have led to. */
  at: z.string().optional(),
  hops: Count.optional(),
  depth: Count,
  /** `extracting`: fetched, and waiting for its JSON. */
  status: z.enum([
    "queued",
    "in_flight",
    "extracting",
    "completed",
    "errored",
    "disallowed",
    "skipped",
  ]),
  /** Tries that failed. */
  failures: Count.optional(),
  /** Turns that broke off while they had this page and nothing else. */
  breaks: Count.optional(),
  /** A turn broke off, or a browser ended, while it had this page: the next one has it alone. */
  alone: z.literal(true).optional(),
  /** Skipped for its depth alone: found nearer to the start it is a page all the same. */
  tooDeep: z.literal(true).optional(),
  /** Where its JSON is made from, while it waits to be asked for. */
  jsonSource: z.string().optional(),
  /** The one behind it: in its host's queue, or among those that wait to be asked for their JSON. */
  next: Count.optional(),
  settledAs: Count.optional(),
  /** Once it is settled: what is shown of it, all in one (settled-record.ts). */
  shown: z.string().optional(),
  /** The same of a page whose JSON is being made, and of what was skipped at once or settled by the first release. */
  reason: z.string().optional(),
  metadata: RecordMetadata.optional(),
  blobs: z.array(RecordBlob).optional(),
});
export type PageRow = z.infer<typeof PageRow>;

/** `z/<n>`: a letter for each of so many records, so that a listing by status need not read them. */
const LettersRow = z.object({
  type: z.literal("letters"),
  letters: z.string(),
  /** The largest number under which one of them was settled. */
  settledAs: Count,
});

/** `u/<bucket>`: addresses that are known, as ` <hash>=<index in base 36>`. */
const KnownRow = z.object({ type: z.literal("known"), known: z.string() });

/** `h/<host>`: pages that wait for a turn there, and what the site was told of them. */
export const HostRow = z.object({
  type: z.literal("host"),
  first: Count.optional(),
  last: Count.optional(),
  queued: Count,
  /** Requests the site thinks are wanted; missing before it was told anything. */
  told: Count.optional(),
  /** Requests are wanted there; or it waits in line for that, with one behind it. */
  open: z.literal(true).optional(),
  waits: z.literal(true).optional(),
  behind: z.string().optional(),
});
export type HostRow = z.infer<typeof HostRow>;

/** `t/<turn>`: what a turn has not reported yet. */
export const TurnRow = z.object({
  type: z.literal("turn"),
  host: z.string(),
  pages: z.array(Count),
  sitemaps: z.array(Count),
});
export type TurnRow = z.infer<typeof TurnRow>;

/** `s/<number>`: a sitemap that is not read yet. */
export const SitemapRow = z.object({
  type: z.literal("sitemap"),
  url: z.string(),
  nesting: Count,
  /** Nobody named it: it was looked for where sitemaps usually are. */
  guessed: z.literal(true).optional(),
  inFlight: z.boolean(),
  failures: Count,
});
export type SitemapRow = z.infer<typeof SitemapRow>;

/** An address that was found, and when the page behind it was changed, as a sitemap says. */
export const Found = z.object({ url: z.string(), lastModifiedAt: EpochMs.optional() });
export type Found = z.infer<typeof Found>;

/** `b/<lane>/<n>`: addresses that were found and not looked at yet. `depth` of a sitemap is its nesting. */
const BacklogRow = z.object({
  type: z.literal("backlog"),
  depth: Count,
  found: z.array(Found),
});

export const CrawlJobRow = z.discriminatedUnion("type", [
  PageRow,
  KnownRow,
  LettersRow,
  HostRow,
  TurnRow,
  SitemapRow,
  BacklogRow,
  PlanRow,
  PatternsRow,
]);
export type CrawlJobRow = z.infer<typeof CrawlJobRow>;

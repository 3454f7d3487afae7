/** The stored state of a crawl job: a small state, and rows for everything numerous. */
import { z } from "zod";
import {
  CrawlPlan,
  CrawlStatus,
  RecordBlob,
  RecordMetadata,
} from "../../../../schemas/crawl/crawl-job.ts";
import { EpochMs } from "../../../../schemas/values.ts";

const Count = z.int().min(0);

/** The row numbers of one lane of the backlog, from `first` to the one before `next`. */
const BacklogLane = z.object({ first: Count, next: Count });

export const CrawlJobState = z.object({
  status: z.enum(["unknown", ...CrawlStatus.options]),
  account: z.string(),
  /** Name of the blob with the whole request. */
  request: z.string(),
  createdAt: EpochMs,
  endedAt: EpochMs.optional(),
  messages: z.array(z.string()),
  /** Why the content signal forbids the crawl. Pages queued at that time are disallowed, not cancelled. */
  refusal: z.string().optional(),
  browserMs: Count,
  /** Number of records, which is the index of the next one. */
  records: Count,
  /** Pages that count against the plan's limit. */
  admitted: Count,
  queued: Count,
  /** Pages in flight, or waiting for their JSON. */
  inFlight: Count,
  /** Number of settlements so far. Each settlement takes the next number. */
  settled: Count,
  total: Count,
  finished: Count,
  disallowed: Count,
  skipped: Count,
  /** Skipped addresses with a record. */
  skippedKept: Count,
  /** Admitted pages that were skipped later. */
  skippedLate: Count.optional(),
  /** Number of rows over which known addresses are spread. Jobs of the first release have KNOWN_ROWS_MAX. */
  knownRows: Count.optional(),
  /** Origins of the start URL and of its redirects. The crawl reads their sitemaps. */
  homes: z.array(
    z.object({
      origin: z.string(),
      learned: z.boolean(),
      /** The job will also try the origin's /sitemap.xml, after it has read all sitemaps that robots.txt names. */
      guess: z.literal(true).optional(),
    }),
  ),
  /**
   * Sitemaps by number: `known` counts all of them. Sitemaps from number `released` on wait to be queued; `open`
   * lists those that are queued or in flight.
   */
  sitemaps: z.object({ known: Count, released: Count, open: z.array(Count) }),
  /**
   * JSON extraction: `asked` counts pages whose task was sent and has not ended. `first` and `last` are the ends of
   * the queue of pages that wait for their task.
   */
  extractions: z
    .object({ asked: Count, first: Count.optional(), last: Count.optional() })
    .optional(),
  /** Limit of `hosts.open`, from the account's list of crawls. Without a number, it is CRAWL_HOSTS_MAX. */
  hostsMax: z.int().min(1).optional(),
  /**
   * `open` counts the hosts at which the job wants requests now. `first` and `last` are the ends of the line of hosts
   * that wait to be opened.
   */
  hosts: z
    .object({ open: Count, first: z.string().optional(), last: z.string().optional() })
    .optional(),
  /**
   * Bytes of the job's results in their stream: those that it knows of, and those that it has reported to its account's
   * list. It reports again after `step` more bytes. `isFull`: the job ended because its account may store no more.
   * Absent in jobs of older versions.
   */
  stored: z
    .object({ bytes: Count, reported: Count, step: Count, isFull: z.literal(true).optional() })
    .optional(),
  /** Number of turns that ended by faults of this platform after the time `since`, while no page was fetched. */
  faults: z.object({ since: EpochMs, turns: Count }).optional(),
  /**
   * Hosts that are paused, because their sites have too many jobs or because of a fault of this platform. While a
   * host is paused, the reminder `askAgain` is set.
   */
  fullHosts: z.array(z.string()).optional(),
  /** Found addresses that are not examined yet. `asked`: the job has sent itself a message to continue. */
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

/** Row `plan`: the plan without its patterns, which may be long. */
const PlanRow = z.object({ type: z.literal("plan"), plan: CrawlPlan });
/** Rows `patterns/include/<n>` and `patterns/exclude/<n>`: PATTERNS_PER_ROW patterns each. */
const PatternsRow = z.object({ type: z.literal("patterns"), patterns: z.array(z.string()) });

/** A record. It is one line of the row `g/<n>`, or the row `p/<index>` (page-rows.ts). */
export const PageRow = z.object({
  type: z.literal("page"),
  url: z.string(),
  /** Address after redirects so far. */
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
  /** Failed attempts. */
  failures: Count.optional(),
  /** Turns that broke off with this page as their only request. */
  breaks: Count.optional(),
  /**
   * A turn broke off, or a browser ended, while it had this page among others. In the next attempt this page is the
   * only request of its turn.
   */
  alone: z.literal(true).optional(),
  /** Skipped for its depth alone. If it is found nearer to the start, it is fetched. */
  tooDeep: z.literal(true).optional(),
  /** The blob from which a model extracts the page's JSON. The field is removed when the task is sent. */
  jsonSource: z.string().optional(),
  /** The next page in its host's queue, or in the queue for JSON. */
  next: Count.optional(),
  settledAs: Count.optional(),
  /** The visible fields of a settled record, in one string (settled-record.ts). */
  shown: z.string().optional(),
  /**
   * The fields that clients see, for a record without `shown`: its page waits for JSON, was skipped when it was
   * found, or was settled by the first release.
   */
  reason: z.string().optional(),
  metadata: RecordMetadata.optional(),
  blobs: z.array(RecordBlob).optional(),
});
export type PageRow = z.infer<typeof PageRow>;

/** Row `g/<n>`: PAGES_PER_ROW records, as one line each; an empty line stands for a record with a row of its own. */
const PagesRow = z.object({ type: z.literal("pages"), lines: z.array(z.string()) });
/** The stored form of a PagesRow (packed-rows.ts). */
const PackedRow = z.object({ type: z.literal("packed"), text: z.string() });

/**
 * Row `z/<n>`: one status letter for each of LETTERS_PER_ROW records, so that a listing by status need not read their
 * rows.
 */
const LettersRow = z.object({
  type: z.literal("letters"),
  letters: z.string(),
  /** The highest settlement number among these records. */
  settledAs: Count,
});

/** Row `u/<bucket>`: known addresses as ` <hash>=<index in base 36>`. */
const KnownRow = z.object({ type: z.literal("known"), known: z.string() });

/** Row `h/<host>`: the queue of a host, and the number of requests that its site knows of. */
export const HostRow = z.object({
  type: z.literal("host"),
  first: Count.optional(),
  last: Count.optional(),
  queued: Count,
  /** Number of wanted requests that the site knows of. Missing before the first message to the site. */
  told: Count.optional(),
  /**
   * `open`: the job wants requests at this host now. `waits`: the host waits in the line of hosts to be opened;
   * `behind` is the host behind it in the line.
   */
  open: z.literal(true).optional(),
  waits: z.literal(true).optional(),
  behind: z.string().optional(),
});
export type HostRow = z.infer<typeof HostRow>;

/** Row `t/<turn>`: requests that a turn has not reported yet. */
export const TurnRow = z.object({
  type: z.literal("turn"),
  host: z.string(),
  pages: z.array(Count),
  sitemaps: z.array(Count),
});
export type TurnRow = z.infer<typeof TurnRow>;

/** Row `s/<number>`: a sitemap that is not read yet. */
export const SitemapRow = z.object({
  type: z.literal("sitemap"),
  url: z.string(),
  nesting: Count,
  /** The job guessed this address (/sitemap.xml): neither robots.txt nor another sitemap names it. */
  guessed: z.literal(true).optional(),
  inFlight: z.boolean(),
  failures: Count,
});
export type SitemapRow = z.infer<typeof SitemapRow>;

/** A found address, with the page's modification time from a sitemap. */
export const Found = z.object({ url: z.string(), lastModifiedAt: EpochMs.optional() });
export type Found = z.infer<typeof Found>;

/**
 * Row `b/<lane>/<n>`: addresses that the job has not examined yet. The depth of a sitemap is the number of sitemap
 * indexes above it.
 */
const BacklogRow = z.object({
  type: z.literal("backlog"),
  depth: Count,
  found: z.array(Found),
});

/** The stored form of a BacklogRow (packed-rows.ts). */
const FoundRow = z.object({ type: z.literal("found"), depth: Count, text: z.string() });

export const CrawlJobRow = z.discriminatedUnion("type", [
  PackedRow,
  PagesRow,
  PageRow,
  KnownRow,
  LettersRow,
  HostRow,
  TurnRow,
  SitemapRow,
  BacklogRow,
  FoundRow,
  PlanRow,
  PatternsRow,
]);
export type CrawlJobRow = z.infer<typeof CrawlJobRow>;

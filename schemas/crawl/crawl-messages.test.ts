import { expect } from "chai";
import type { z } from "zod";
import { account } from "../account/account.ts";
import { CrawlNews, crawlJob, PageOutcome, RecordMetadata } from "./crawl-job.ts";
import { crawlPage } from "./crawl-page.ts";
import { RobotsRules } from "./robots-rules.ts";
import { RobotsProgress, site } from "./site.ts";

/** An accepted value, a value past the limit, and the path of its fault. */
type Bound = [name: string, schema: z.ZodType, good: unknown, bad: unknown, path: string];

const ID = "a".repeat(32);
const URL_OF_PAGE = "http://x/";
const text = (length: number) => "a".repeat(length);
const many = (count: number, item: unknown) => Array.from({ length: count }, () => item);
const { start, list, turnGranted, robotsLearned, turnReported, sitemapRead } = crawlJob.messages;

const plan = (more: object = {}, options: object = {}) => ({
  account: ID,
  request: { name: "crawl.x.request", bytes: 1 },
  plan: {
    ...{ url: URL_OF_PAGE, limit: 1, depth: 0, source: "all", formats: ["html"], render: false },
    ...{ intent: { purposes: ["search"] }, options, ...more },
  },
});
const granted = (more: object) => ({
  ...{ host: "x", turn: ID, requests: 1, ...more },
});
const learned = (more: object) => ({ host: "x", scheme: "http", sitemaps: [], ...more });
const slice = (more: object) => ({
  ...{ turn: ID, url: URL_OF_PAGE, urls: [], nested: [], nesting: 0, ...more },
});
const fetched = (more: object) => ({
  ...{ kind: "fetched", index: 0, metadata: { url: URL_OF_PAGE }, blobs: [], links: [] },
  ...{ browserMs: 0, ...more },
});
const skipped = (reason: string) => ({ kind: "skipped", index: 0, reason });
const reported = (outcomes: unknown[]) => ({ host: "x", turn: ID, outcomes });
const progress = (more: object) => ({ url: URL_OF_PAGE, hops: 0, attempt: 1, ...more });
const turn = (requests: unknown[]) => ({
  ...{ account: ID, job: ID, host: "x", turn: ID, requests },
});
const request = { type: "page", index: 0, url: URL_OF_PAGE, attempt: 1 };
const begin = (urls: string[]) => ({ turn: ID, urls, intent: { purposes: ["search"] } });

const BOUNDS: Bound[] = [
  [
    "pages of a plan",
    start.input,
    plan({ limit: 100_000 }),
    plan({ limit: 100_001 }),
    "plan.limit",
  ],
  [
    "depth of a plan",
    start.input,
    plan({ depth: 100_000 }),
    plan({ depth: 100_001 }),
    "plan.depth",
  ],
  [
    "address of a plan",
    start.input,
    plan({ url: text(8_192) }),
    plan({ url: text(8_193) }),
    "plan.url",
  ],
  [
    "patterns of a plan",
    start.input,
    plan({}, { includePatterns: many(100, "a") }),
    plan({}, { includePatterns: many(101, "a") }),
    "plan.options.includePatterns",
  ],
  [
    "characters of a pattern",
    start.input,
    plan({}, { excludePatterns: [text(1_024)] }),
    plan({}, { excludePatterns: [text(1_025)] }),
    "plan.options.excludePatterns.0",
  ],
  [
    "records listed at once",
    list.input,
    { account: ID, count: 100 },
    { account: ID, count: 101 },
    "count",
  ],
  [
    "requests of a turn",
    turnGranted.input,
    granted({ requests: 256 }),
    granted({ requests: 257 }),
    "requests",
  ],
  [
    "sitemaps of a robots.txt",
    robotsLearned.input,
    learned({ sitemaps: many(1_000, URL_OF_PAGE) }),
    learned({ sitemaps: many(1_001, URL_OF_PAGE) }),
    "sitemaps",
  ],
  [
    "reason of a refusal",
    robotsLearned.input,
    learned({ refusal: text(1_000) }),
    learned({ refusal: text(1_001) }),
    "refusal",
  ],
  [
    "pages of a report",
    turnReported.input,
    reported(many(64, skipped("r"))),
    reported(many(65, skipped("r"))),
    "outcomes",
  ],
  [
    "addresses of a slice",
    sitemapRead.input,
    slice({ urls: many(200, { url: URL_OF_PAGE }) }),
    slice({ urls: many(201, { url: URL_OF_PAGE }) }),
    "urls",
  ],
  [
    "sitemaps of a slice",
    sitemapRead.input,
    slice({ nested: many(200, { url: URL_OF_PAGE }) }),
    slice({ nested: many(201, { url: URL_OF_PAGE }) }),
    "nested",
  ],
  ["reason of a page", PageOutcome, skipped(text(1_000)), skipped(text(1_001)), "reason"],
  [
    "links of a page",
    PageOutcome,
    fetched({ links: many(10_000, URL_OF_PAGE) }),
    fetched({ links: many(10_001, URL_OF_PAGE) }),
    "links",
  ],
  [
    "title of a page",
    RecordMetadata,
    { url: URL_OF_PAGE, title: text(1_024) },
    { url: URL_OF_PAGE, title: text(1_025) },
    "title",
  ],
  [
    "content type of a page",
    RecordMetadata,
    { url: URL_OF_PAGE, contentType: text(256) },
    { url: URL_OF_PAGE, contentType: text(257) },
    "contentType",
  ],
  [
    "requests of a task",
    crawlPage.messages.fetchTurn.input,
    turn(many(256, request)),
    turn(many(257, request)),
    "requests",
  ],
  [
    "redirects of a robots.txt",
    RobotsProgress,
    progress({ hops: 5 }),
    progress({ hops: 6 }),
    "hops",
  ],
  [
    "tries of a robots.txt",
    RobotsProgress,
    progress({ attempt: 3 }),
    progress({ attempt: 4 }),
    "attempt",
  ],
  [
    "delay of a robots.txt",
    RobotsRules.pick({ crawlDelayMs: true }),
    { crawlDelayMs: 86_400_000 },
    { crawlDelayMs: 86_400_001 },
    "crawlDelayMs",
  ],
  [
    "addresses that are judged",
    site.messages.begin.input,
    begin(many(256, URL_OF_PAGE) as string[]),
    begin(many(257, URL_OF_PAGE) as string[]),
    "urls",
  ],
  [
    "pages of an update",
    CrawlNews.pick({ pages: true }),
    { pages: many(100, { index: 0, url: URL_OF_PAGE, status: "queued" }) },
    { pages: many(101, { index: 0, url: URL_OF_PAGE, status: "queued" }) },
    "pages",
  ],
  [
    "name of a token",
    account.messages.createToken.input.pick({ name: true }),
    { name: text(120) },
    { name: text(121) },
    "name",
  ],
];

describe("limits of messages between actors and workers", () => {
  for (const [name, schema, good, bad, path] of BOUNDS) {
    it(`parse() enforces the limit of ${name}`, () => {
      expect(schema.safeParse(good).error?.issues).to.equal(undefined);
      const issues = schema.safeParse(bad).error?.issues ?? [];
      expect(issues.map((issue) => [issue.code, issue.path.join(".")])).to.deep.equal([
        ["too_big", path],
      ]);
    });
  }
});

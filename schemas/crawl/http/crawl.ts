/** The body of a crawl request: the start, the extent, and the formats of each page. */
import { z } from "zod";
import { shapedLike } from "../../http/shaped-like.ts";
import { HttpUrl } from "../../rendering/http/document-source.ts";
import { jsonQuestionFields, jsonQuestionRules } from "../../rendering/http/json-question.ts";
import {
  pageParameterFields,
  unsentFields,
  userAgentField,
} from "../../rendering/http/page-parameters.ts";
import { encodeKey } from "../../subjects.ts";
import { ContentUse, CrawlPurpose } from "../content-signal.ts";
import { CrawlFormat } from "../crawl-job.ts";
import {
  CRAWL_DEPTH_MAX,
  CRAWL_MAX_AGE_S,
  CRAWL_MAX_AGE_S_MAX,
  CRAWL_PAGES,
  CRAWL_PAGES_MAX,
  CRAWL_PATTERN_CHARS_MAX,
  CRAWL_PATTERNS_MAX,
  CRAWL_URL_CHARS_MAX,
  HOST_KEY_CHARS_MAX,
} from "../limits.ts";

/** The last second of the year 9999. A larger number was meant as milliseconds. */
const UNIX_SECONDS_MAX = 253_402_300_799;

const StartUrl = HttpUrl.refine((text) => !hasCredentials(text), {
  error: "Expected an address without a user name; authenticate is the place for it",
  when: ({ issues }) => issues.length === 0,
})
  .transform(normalized)
  .refine((url) => url.length <= CRAWL_URL_CHARS_MAX, {
    error: `Expected an address of at most ${CRAWL_URL_CHARS_MAX} characters`,
  })
  .refine((url) => encodeKey(new URL(url).host).length <= HOST_KEY_CHARS_MAX, {
    error: "Expected a shorter host name: this one is too long for DNS",
  });

const Patterns = z
  .array(z.string().min(1).max(CRAWL_PATTERN_CHARS_MAX))
  .max(CRAWL_PATTERNS_MAX)
  .optional();

const CrawlOptions = z.strictObject(
  {
    includeExternalLinks: z
      .boolean()
      .optional()
      .describe("Follow links to any host; includeSubdomains then has no effect")
      .meta({ default: false }),
    includeSubdomains: z
      .boolean()
      .optional()
      .describe(
        "Follow links to subdomains of the start's host, but not to its siblings or parent. example.com and www.example.com are always one site, with the subdomains of example.com",
      )
      .meta({ default: false }),
    includePatterns: Patterns.describe(
      "Crawl only addresses that match one of these. * matches any characters but /, and ** any characters; every other character, also [ and ?, matches itself. A pattern with a scheme must match the whole address, any other one host and path, or the end of the path. The start is always visited",
    ),
    excludePatterns: Patterns.describe(
      "Crawl no address that matches one of these; takes precedence over includePatterns",
    ),
  },
  { error: shapedLike({ includePatterns: ["https://example.com/docs/**"] }) },
);

const JsonOptions = z
  .strictObject(jsonQuestionFields, {
    error: shapedLike({ prompt: "Name and price of the product" }),
  })
  .check(jsonQuestionRules);

const { html: _html, userAgent: _userAgent, url: _url, ...pageFields } = pageParameterFields;

/** Parameters of a page that say how a browser is to treat it: without one, each would be ignored. */
const BROWSER_FIELDS = [
  "addStyleTag",
  "addScriptTag",
  "viewport",
  "gotoOptions",
  "goToOptions",
  "waitForSelector",
  "waitForTimeout",
  "actionTimeout",
  "bestAttempt",
  "emulateMediaType",
  "setJavaScriptEnabled",
  "rejectResourceTypes",
  "rejectRequestPattern",
  "allowResourceTypes",
  "allowRequestPattern",
] as const satisfies (keyof typeof pageFields)[];

const fields = z.strictObject({
  url: StartUrl.describe("The address where the crawl starts"),
  limit: z
    .int()
    .min(1)
    .max(CRAWL_PAGES_MAX)
    .default(CRAWL_PAGES)
    .describe("Highest number of pages"),
  depth: z
    .int()
    .min(0)
    .max(CRAWL_DEPTH_MAX)
    .default(CRAWL_DEPTH_MAX)
    .describe(
      "Highest number of links from the start, or from a page that a sitemap lists. 0 follows no links: the crawl has the start, and with source all or sitemaps the pages of sitemaps",
    ),
  source: z.enum(["all", "sitemaps", "links"]).default("all").describe("Sources of addresses"),
  formats: distinct(CrawlFormat).default(["html"]).describe("Formats to store for each page"),
  render: z
    .boolean()
    .default(true)
    .describe("Loads pages in a browser; false only fetches them and uses no browser time"),
  jsonOptions: JsonOptions.optional().describe("Options of the format json; required with it"),
  maxAge: z
    .int()
    .min(0)
    .max(CRAWL_MAX_AGE_S_MAX)
    .default(CRAWL_MAX_AGE_S)
    .describe(
      "Highest age of a cached page with the same parameters that replaces a request, in seconds. 0 fetches every page",
    ),
  modifiedSince: z
    .int()
    .min(0)
    .max(UNIX_SECONDS_MAX, { error: "Expected Unix seconds, not milliseconds" })
    .optional()
    .describe("Seconds since 1970; pages that have not changed since are skipped"),
  options: CrawlOptions.default({}).describe("Rules for the links to follow"),
  crawlPurposes: distinct(CrawlPurpose)
    .default(CrawlPurpose.options)
    .describe("Purposes of the crawl; a site's Content-Signal may refuse them"),
  contentUse: ContentUse.exclude(["immediate"])
    .optional()
    .describe("How much of the content will be used; a site's Content-Signal may refuse it"),
  ...pageFields,
  userAgent: z
    .never({
      error:
        "The crawler's name is fixed: VendorBrowserRenderingCrawler/1.0, expected no userAgent",
    })
    .optional()
    .describe("Refused: the crawler's name is always VendorBrowserRenderingCrawler/1.0"),
});

export const CrawlRequest = fields
  .check(crawlRules)
  .meta({
    example: {
      url: "https://example.com/",
      limit: 50,
      formats: ["markdown"],
      render: false,
      options: { excludePatterns: ["/archive/**"] },
    },
  })
  .transform(({ goToOptions, userAgent: _, ...request }) => {
    const gotoOptions = request.gotoOptions ?? goToOptions;
    return gotoOptions === undefined ? request : { ...request, gotoOptions };
  });
/** All parameters of a crawl, with defaults. Parses to itself. */
export type CrawlRequest = z.output<typeof CrawlRequest>;

/** Checks rules that concern several fields. */
function crawlRules({ value, issues }: z.core.ParsePayload<z.output<typeof fields>>): void {
  const fault = (field: string, message: string) =>
    issues.push({ code: "custom", path: [field], message, input: value });
  if (value.gotoOptions !== undefined && value.goToOptions !== undefined) {
    fault("goToOptions", "Expected at most one of gotoOptions and goToOptions");
  }
  const [named] = userAgentField(value) ?? [];
  for (const [name, message] of [
    ...(named === undefined
      ? []
      : [[named, "The crawler's name is fixed, expected no field for it"]]),
    ...(value.render ? unsentFields(value) : []),
  ] as [string, string][]) {
    issues.push({ code: "custom", path: ["setExtraHTTPHeaders", name], message, input: value });
  }
  const asJson = value.formats.includes("json");
  if (asJson && value.jsonOptions === undefined) {
    fault("jsonOptions", "Missing, expected what the format json is to hold");
  }
  if (!asJson && value.jsonOptions !== undefined) {
    fault("jsonOptions", 'Expected "json" in formats, or no jsonOptions');
  }
  if (value.render) return;
  for (const field of BROWSER_FIELDS) {
    if (value[field] !== undefined) {
      fault(field, "Needs a browser, expected render to be true, or this field to be absent");
    }
  }
}

/** A non-empty list of distinct items. */
function distinct<S extends z.ZodEnum>(item: S) {
  return z
    .array(item)
    .min(1)
    .max(item.options.length)
    .refine((items) => new Set(items).size === items.length, { error: "Expected no duplicates" })
    .meta({ uniqueItems: true });
}

function hasCredentials(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && (url.username !== "" || url.password !== "");
}

/** Normalises by the WHATWG URL standard and drops the fragment, which no server sees. */
function normalized(text: string): string {
  const url = new URL(text);
  // Removes dots at the end of the host, as crawl-url.ts does. The gateway consults the site of this host, so it must
  // be the same host that the crawl requests.
  url.hostname = url.hostname.replace(/\.+$/, "");
  url.hash = "";
  return url.href;
}

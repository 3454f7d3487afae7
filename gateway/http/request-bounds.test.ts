import { expect } from "chai";
import type { z } from "zod";
import { CreateToken } from "../../schemas/account/http/tokens.ts";
import { CrawlRequest } from "../../schemas/crawl/http/crawl.ts";
import { CrawlQuery, CrawlsQuery } from "../../schemas/crawl/http/crawl-answers.ts";
import { Listing } from "../../schemas/http/listing.ts";
import { PdfRequest } from "../../schemas/rendering/http/pdf.ts";
import { RenderQuery } from "../../schemas/rendering/http/rendering.ts";
import { ScreenshotRequest } from "../../schemas/rendering/http/screenshot.ts";
import { refusal } from "../../scripts/testing/refusal.ts";
import { parseRequest } from "./parse-request.ts";

/** The test data of one field: the last valid value, the first invalid value, and the error message for it. */
type Bound = [pointer: string, good: object, bad: object, said: string];

const text = (length: number) => "a".repeat(length);
const many = (count: number, item: unknown) => Array.from({ length: count }, () => item);
const urlOf = (length: number) => `http://x/${text(length - 9)}`;
const fieldsOf = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`x-${index}`, "1"]));

const CLIP = { x: 0, y: 0, width: 10, height: 10 };
const shot = (options: object) => ({ screenshotOptions: { type: "webp", ...options } });

/** The fields that requests for a PDF, a picture and a crawl have in common. */
const OF_PAGES: Bound[] = [
  ...bound("/addStyleTag", (n) => ({ addStyleTag: many(n, { content: "" }) }), 50, "50 items"),
  ...bound("/addScriptTag", (n) => ({ addScriptTag: many(n, { content: "" }) }), 50, "50 items"),
  ...bound(
    "/addScriptTag/0/content",
    (n) => ({ addScriptTag: [{ content: text(n) }] }),
    5_000_000,
    "at most 5000000 characters",
  ),
  ...bound(
    "/addStyleTag/0/url",
    (n) => ({ addStyleTag: [{ url: urlOf(n) }] }),
    16_384,
    "at most 16384 characters",
  ),
  ...bound("/cookies", (n) => ({ cookies: many(n, cookie("b")) }), 180, "at most 180 items"),
  ...bound(
    "/cookies/0/value",
    (n) => ({ cookies: [cookie(text(n - 1))] }),
    4_096,
    "at most 4096 characters",
  ),
  ...bound(
    "/cookies/0/sourcePort",
    (n) => ({ cookies: [{ ...cookie("b"), sourcePort: n }] }),
    65_535,
    "from -1 to 65535",
  ),
  ...bound(
    "/setExtraHTTPHeaders",
    (n) => ({ setExtraHTTPHeaders: fieldsOf(n) }),
    64,
    "at most 64 fields",
  ),
  ...bound(
    "/setExtraHTTPHeaders/a",
    (n) => ({ setExtraHTTPHeaders: { a: text(n) } }),
    8_192,
    "at most 8192 characters",
  ),
  ...bound(
    "/authenticate/username",
    (n) => ({ authenticate: { username: text(n), password: "p" } }),
    1_024,
    "1 to 1024 characters",
  ),
  ...bound(
    "/authenticate/password",
    (n) => ({ authenticate: { username: "u", password: text(n) } }),
    1_024,
    "1 to 1024 characters",
  ),
  ...bound("/viewport/width", (n) => ({ viewport: { width: n, height: 1 } }), 10_000, "1 to 10000"),
  ...bound("/viewport/height", (n) => ({ viewport: { width: 1, height: n } }), 10_000, "to 10000"),
  [
    "/viewport/deviceScaleFactor",
    { viewport: { width: 1, height: 1, deviceScaleFactor: 10 } },
    { viewport: { width: 1, height: 1, deviceScaleFactor: 10.1 } },
    "from 0.1 to 10",
  ],
  ...bound("/gotoOptions/timeout", (n) => ({ gotoOptions: { timeout: n } }), 60_000, "1 to 60000"),
  ...bound(
    "/waitForSelector/selector",
    (n) => ({ waitForSelector: { selector: text(n) } }),
    4_096,
    "1 to 4096 characters",
  ),
  ...bound(
    "/waitForSelector/timeout",
    (n) => ({ waitForSelector: { selector: "a", timeout: n } }),
    120_000,
    "1 to 120000",
  ),
  ...bound("/waitForTimeout", (n) => ({ waitForTimeout: n }), 120_000, "from 0 to 120000"),
  ...bound("/actionTimeout", (n) => ({ actionTimeout: n }), 120_000, "from 1 to 120000"),
  ...bound(
    "/rejectRequestPattern",
    (n) => ({ rejectRequestPattern: many(n, "a") }),
    50,
    "at most 50 items",
  ),
  ...bound(
    "/allowRequestPattern/0",
    (n) => ({ allowRequestPattern: [text(n)] }),
    1_024,
    "1 to 1024 characters",
  ),
];

const OF_PDFS: Bound[] = [
  ...bound("/userAgent", (n) => ({ userAgent: text(n) }), 1_024, "1 to 1024 characters"),
  ...bound(
    "/pdfOptions/headerTemplate",
    (n) => ({ pdfOptions: { headerTemplate: text(n) } }),
    500_000,
    "at most 500000 characters",
  ),
  ...bound(
    "/pdfOptions/pageRanges",
    (n) => ({ pdfOptions: { pageRanges: "1".padEnd(n) } }),
    1_024,
    "at most 1024 characters",
  ),
  ...bound("/pdfOptions/timeout", (n) => ({ pdfOptions: { timeout: n } }), 300_000, "1 to 300000"),
  [
    "/pdfOptions/scale",
    { pdfOptions: { scale: 2 } },
    { pdfOptions: { scale: 2.01 } },
    "from 0.1 to 2",
  ],
  [
    "/pdfOptions/scale",
    { pdfOptions: { scale: 0.1 } },
    { pdfOptions: { scale: 0.09 } },
    "from 0.1 to 2",
  ],
  [
    "/pdfOptions/width",
    { pdfOptions: { width: "200in" } },
    { pdfOptions: { width: "200.1in" } },
    "from 0 to 200in",
  ],
];

const OF_SCREENSHOTS: Bound[] = [
  ...bound("/selector", (n) => ({ selector: text(n) }), 4_096, "1 to 4096 characters"),
  ...bound("/screenshotOptions/quality", (n) => shot({ quality: n }), 100, "from 0 to 100"),
  ["/screenshotOptions/quality", shot({ quality: 0 }), shot({ quality: -1 }), "from 0 to 100"],
  ...(["width", "height"] as const).map((side): Bound => {
    const good = { clip: { ...CLIP, [side]: 1 } };
    const bad = { clip: { ...CLIP, [side]: 0.9 } };
    return [`/screenshotOptions/clip/${side}`, shot(good), shot(bad), "from 1 to 33554432"];
  }),
  ...(["x", "y"] as const).flatMap((side) =>
    bound(
      `/screenshotOptions/clip/${side}`,
      (n) => shot({ clip: { ...CLIP, [side]: n } }),
      33_554_432,
      "from 0 to 33554432",
    ),
  ),
  [
    "/screenshotOptions/clip/scale",
    shot({ clip: { ...CLIP, scale: 0.1 } }),
    shot({ clip: { ...CLIP, scale: 0.09 } }),
    "from 0.1 to 10",
  ],
  [
    "/screenshotOptions/clip/scale",
    shot({ clip: { ...CLIP, scale: 10 } }),
    shot({ clip: { ...CLIP, scale: 10.1 } }),
    "from 0.1 to 10",
  ],
  ...bound(
    "/screenshotOptions/clip",
    (n) => shot({ clip: { ...CLIP, width: n } }),
    16_383,
    "at most 16383 device pixels a side",
  ),
  ...bound(
    "/screenshotOptions/clip",
    (n) => shot({ clip: { ...CLIP, width: 1_920, height: n } }),
    8_640,
    "16588800 in all",
  ),
  ...bound(
    "/viewport",
    (n) => ({ viewport: { width: 960, height: n, deviceScaleFactor: 2 } }),
    4_320,
    "16588800 in all",
  ),
  [
    "/screenshotOptions/clip",
    { ...shot({ clip: CLIP }), viewport: { width: 1, height: 1, deviceScaleFactor: 2 } },
    {
      ...shot({ clip: { ...CLIP, width: 4_096, scale: 2 } }),
      viewport: { width: 1, height: 1, deviceScaleFactor: 2 },
    },
    "at most 16383 device pixels a side",
  ],
  [
    "/screenshotOptions/clip",
    shot({ fullPage: true }),
    shot({ fullPage: true, clip: CLIP }),
    "one",
  ],
  ["/selector", { selector: "a" }, { selector: "a", ...shot({ fullPage: true }) }, "at most one"],
];

const OF_CRAWLS: Bound[] = [
  ...bound("/limit", (n) => ({ limit: n }), 100_000, "from 1 to 100000"),
  ["/limit", { limit: 1 }, { limit: 0 }, "from 1 to 100000"],
  ...bound("/depth", (n) => ({ depth: n }), 100_000, "from 0 to 100000"),
  ["/depth", { depth: 0 }, { depth: -1 }, "from 0 to 100000"],
  ...bound("/maxAge", (n) => ({ maxAge: n }), 604_800, "from 0 to 604800"),
  ...bound("/url", (n) => ({ url: urlOf(n) }), 8_192, "at most 8192 characters"),
  ...bound(
    "/options/includePatterns",
    (n) => ({ options: { includePatterns: many(n, "/a") } }),
    100,
    "at most 100 items",
  ),
  ...bound(
    "/options/excludePatterns/0",
    (n) => ({ options: { excludePatterns: [text(n)] } }),
    1_024,
    "1 to 1024 characters",
  ),
  ...bound(
    "/jsonOptions/prompt",
    (n) => json({ prompt: text(n) }),
    16_384,
    "1 to 16384 characters",
  ),
  ...bound(
    "/jsonOptions/custom_ai",
    (n) => json({ prompt: "p", custom_ai: many(n, { model: "openai/m", authorization: "k" }) }),
    10,
    "1 to 10 items",
  ),
  ...bound(
    "/jsonOptions/custom_ai/0/model",
    (n) =>
      json({ prompt: "p", custom_ai: [{ model: `openai/${text(n - 7)}`, authorization: "k" }] }),
    256,
    "at most 256 characters",
  ),
  ...bound(
    "/jsonOptions/custom_ai/0/authorization",
    (n) => json({ prompt: "p", custom_ai: [{ model: "openai/m", authorization: text(n) }] }),
    8_192,
    "1 to 8192 characters",
  ),
];

const policies = [{ effect: "allow", permission_groups: [{ id: "account.read" }] }];
const OF_QUERIES: [schema: z.ZodType, name: string, good: string, bad: string, said: string][] = [
  [CrawlQuery, "limit", "100000", "100001", "from 1 to 100000"],
  [CrawlQuery, "cursor", text(128), text(129), "1 to 128 characters"],
  [CrawlsQuery, "limit", "100", "101", "from 1 to 100"],
  [Listing, "per_page", "100", "101", "from 1 to 100"],
  [RenderQuery, "cacheTTL", "86400", "86401", "from 0 to 86400"],
];

describe("bounds of requests", () => {
  for (const [name, schema, around, bounds] of [
    ["a PDF", PdfRequest, { url: "http://x/" }, [...OF_PAGES, ...OF_PDFS]],
    ["a picture", ScreenshotRequest, { url: "http://x/" }, [...OF_PAGES, ...OF_SCREENSHOTS]],
    ["a crawl", CrawlRequest, { url: "http://x/" }, [...OF_PAGES, ...OF_CRAWLS]],
    [
      "a token",
      CreateToken,
      { name: "n", policies },
      bound("/name", (n) => ({ name: text(n) }), 120, "1 to 120 characters"),
    ],
  ] as const) {
    for (const [pointer, good, bad, said] of bounds) {
      it(`parseRequest() of ${name} holds ${pointer} to ${said}`, () => {
        parseRequest(schema, { ...around, ...good }, "");
        const { details } = refusal(() => parseRequest(schema, { ...around, ...bad }, ""));
        const [fault, ...others] = details.faults ?? [];
        expect(others).to.deep.equal([]);
        expect(fault?.pointer).to.equal(pointer);
        expect(fault?.message).to.match(/^Cannot accept \/\S+: Expected /);
        expect(fault?.message).to.contain(said);
      });
    }
  }

  for (const [schema, name, good, bad, said] of OF_QUERIES) {
    it(`parseRequest() of a query holds ${name} to ${said}`, () => {
      parseRequest(schema, { [name]: good }, "/query");
      const { details } = refusal(() => parseRequest(schema, { [name]: bad }, "/query"));
      const [fault] = details.faults ?? [];
      expect(fault?.pointer).to.equal(`/query/${name}`);
      expect(fault?.message).to.contain(said);
    });
  }

  it("parseRequest() of a crawl and of lists fills in the defaults", () => {
    const crawl = parseRequest(CrawlRequest, { url: "http://x/" }, "") as z.output<
      typeof CrawlRequest
    >;
    expect(crawl).to.include({ limit: 10, depth: 100_000, maxAge: 86_400, render: true });
    const pdf = parseRequest(PdfRequest, { html: "x", gotoOptions: {}, pdfOptions: {} }, "");
    expect(pdf.gotoOptions).to.include({ timeout: 30_000 });
    expect(pdf.pdfOptions).to.include({ timeout: 30_000 });
    expect(parseRequest(Listing, {}, "/query")).to.include({ page: 1, per_page: 20 });
  });
});

/** Returns the test data of a field that is valid with the size `most` and invalid with the next size. */
function bound(
  pointer: string,
  body: (size: number) => object,
  most: number,
  said: string,
): Bound[] {
  return [[pointer, body(most), body(most + 1), said]];
}

function cookie(value: string) {
  return { name: "n", value, domain: "x" };
}

function json(jsonOptions: object) {
  return { formats: ["json"], jsonOptions };
}

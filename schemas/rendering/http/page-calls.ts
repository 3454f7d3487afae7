/** The calls that read a loaded page: the body of each request, and the result in its response. */
import { z } from "zod";
import { shapedLike } from "../../http/shaped-like.ts";
import { SELECTOR_CHARS_MAX } from "../../limits.ts";
import { META_TITLE_CHARS_MAX, SCRAPE_SELECTORS_MAX } from "../limits.ts";
import { jsonQuestionFields, jsonQuestionRules } from "./json-question.ts";
import {
  documentFields,
  normalizePage,
  pageParameterFields,
  pageRules,
} from "./page-parameters.ts";
import { PictureOptions, pictureSizeRules } from "./screenshot.ts";

const pageFields = { ...pageParameterFields, ...documentFields };
const HELLO = { html: "<h1>Hello</h1>" };

export const ContentRequest = z
  .strictObject(pageFields)
  .check(pageRules)
  .meta({ example: HELLO })
  .transform(normalizePage);
export type ContentRequest = z.output<typeof ContentRequest>;

export const MarkdownRequest = z
  .strictObject(pageFields)
  .check(pageRules)
  .meta({ example: HELLO })
  .transform(normalizePage);
export type MarkdownRequest = z.output<typeof MarkdownRequest>;

export const LinksRequest = z
  .strictObject({
    ...pageFields,
    excludeExternalLinks: z
      .boolean()
      .optional()
      .meta({ default: false })
      .describe("Returns only links to the page's own host, with or without www"),
    visibleLinksOnly: z
      .boolean()
      .optional()
      .meta({ default: false })
      .describe("Returns only visible links: displayed, with an area above zero"),
  })
  .check(pageRules)
  .meta({ example: { url: "https://example.com", excludeExternalLinks: true } })
  .transform(normalizePage);
export type LinksRequest = z.output<typeof LinksRequest>;

const Selector = z.string().min(1).max(SELECTOR_CHARS_MAX);

export const ScrapeRequest = z
  .strictObject({
    ...pageFields,
    elements: z
      .array(
        z.strictObject(
          { selector: Selector.describe("CSS selector of the elements") },
          { error: shapedLike({ selector: "h1" }) },
        ),
      )
      .min(1)
      .max(SCRAPE_SELECTORS_MAX)
      .describe("Selectors to search for; the result has one entry per selector, in this order"),
  })
  .check(pageRules)
  .meta({ example: { ...HELLO, elements: [{ selector: "h1" }] } })
  .transform(normalizePage);
export type ScrapeRequest = z.output<typeof ScrapeRequest>;

export const SnapshotFormat = z.enum(["content", "screenshot", "markdown", "accessibilityTree"]);
export type SnapshotFormat = z.output<typeof SnapshotFormat>;

export const SnapshotRequest = z
  .strictObject({
    ...pageFields,
    formats: z
      .array(SnapshotFormat)
      .min(1)
      .max(SnapshotFormat.options.length)
      .refine((formats) => new Set(formats).size === formats.length, {
        error: "Expected no duplicates",
      })
      .default(["content", "screenshot"])
      .meta({ uniqueItems: true })
      .describe("The formats in the result; the page is loaded once for all of them"),
    screenshotOptions: PictureOptions.prefault({}).describe(
      "The area to capture and the image format",
    ),
  })
  .check(pageRules)
  .check(pictureSizeRules)
  .meta({ example: { ...HELLO, formats: ["markdown", "screenshot"] } })
  .transform(normalizePage);
export type SnapshotRequest = z.output<typeof SnapshotRequest>;

export const JsonRequest = z
  .strictObject({ ...pageFields, ...jsonQuestionFields })
  .check(pageRules)
  .check(jsonQuestionRules)
  .meta({
    // The example is set here, because Zod loses `examples` of objects with transformed fields.
    example: {
      url: "https://example.com",
      prompt: "Name and price of the product",
      response_format: { type: "json_schema", json_schema: { properties: { price: "number" } } },
    },
  })
  .transform(normalizePage);
export type JsonRequest = z.output<typeof JsonRequest>;

export const AccessibilityTreeRequest = z
  .strictObject({
    ...pageFields,
    interestingOnly: z
      .boolean()
      .optional()
      .describe(
        "Leave out nodes without a meaning of their own; true when absent, unless root is given",
      ),
    root: Selector.optional().describe(
      "CSS selector: the tree of the first element that matches, null where there is none",
    ),
  })
  .check(pageRules)
  .meta({ example: HELLO })
  .transform(normalizePage);
export type AccessibilityTreeRequest = z.output<typeof AccessibilityTreeRequest>;

export const PageMeta = z.object({
  status: z.int().nullable().describe("HTTP status of the page; null for submitted HTML"),
  title: z.string().max(META_TITLE_CHARS_MAX),
});
export type PageMeta = z.output<typeof PageMeta>;

const ScrapedElement = z.object({
  text: z.string().describe("The element's visible text"),
  html: z.string().describe("The element's inner HTML"),
  attributes: z.array(z.object({ name: z.string(), value: z.string() })),
  top: z.number().describe("Distance from the top left corner of the page, in CSS pixels"),
  left: z.number(),
  width: z.number(),
  height: z.number(),
});
const ScrapeResult = z.array(z.object({ selector: z.string(), results: z.array(ScrapedElement) }));
export type ScrapeResult = z.output<typeof ScrapeResult>;

const Flag = z.boolean().optional();
const Text = z.string().optional();
const Mixed = z.union([z.boolean(), z.literal("mixed")]).optional();

/** A node of an accessibility tree, with puppeteer's field names. The nodes in `children` have the same form. */
export const AccessibilityNode = z.object({
  role: z.string(),
  name: Text,
  value: z.union([z.string(), z.number()]).optional(),
  description: Text,
  keyshortcuts: Text,
  roledescription: Text,
  valuetext: Text,
  disabled: Flag,
  expanded: Flag,
  focused: Flag,
  modal: Flag,
  multiline: Flag,
  multiselectable: Flag,
  readonly: Flag,
  required: Flag,
  selected: Flag,
  checked: Mixed,
  pressed: Mixed,
  level: z.number().optional(),
  valuemin: z.number().optional(),
  valuemax: z.number().optional(),
  autocomplete: Text,
  haspopup: Text,
  invalid: Text,
  orientation: Text,
  busy: Flag,
  live: Text,
  atomic: Flag,
  relevant: Text,
  errormessage: Text,
  details: Text,
  url: Text,
  children: z.array(z.unknown()).optional().describe("Child nodes of the same form"),
});
export type AccessibilityNode = z.output<typeof AccessibilityNode>;

const SnapshotResult = z.object({
  content: z.string().optional().describe("The HTML after rendering"),
  screenshot: z.string().optional().describe("The image in base64"),
  markdown: z.string().optional().describe("Markdown with YAML front matter"),
  accessibilityTree: AccessibilityNode.nullable().optional(),
});
export type SnapshotResult = z.output<typeof SnapshotResult>;

/**
 * The calls that always respond with JSON, by name. A name is the last part of the call's path, the name of its task,
 * and the name of its method in bindings.
 */
export const PAGE_CALLS = {
  content: {
    id: "getContent",
    summary: "Get the HTML of a page after rendering",
    request: ContentRequest,
    result: z.string().describe("The HTML after rendering"),
    hasMeta: true,
  },
  markdown: {
    id: "getMarkdown",
    summary: "Get a page as Markdown",
    request: MarkdownRequest,
    result: z.string().describe("Markdown, with YAML front matter if the page has a title"),
  },
  links: {
    id: "getLinks",
    summary: "List the links of a page",
    request: LinksRequest,
    result: z.array(z.string()).describe("Absolute addresses, in document order"),
  },
  scrape: {
    id: "scrapePage",
    summary: "Get the text, attributes and positions of elements",
    request: ScrapeRequest,
    result: ScrapeResult,
  },
  snapshot: {
    id: "takeSnapshot",
    summary: "Get several formats of one load of a page",
    request: SnapshotRequest,
    result: SnapshotResult,
    hasMeta: true,
  },
  json: {
    id: "extractJson",
    summary: "Extract data from a page with an AI model",
    request: JsonRequest,
    result: z.looseObject({}).describe("An object that satisfies the schema in response_format"),
  },
  accessibilityTree: {
    id: "getAccessibilityTree",
    summary: "Get the accessibility tree of a page",
    request: AccessibilityTreeRequest,
    result: z.object({ accessibilityTree: AccessibilityNode.nullable() }),
  },
} as const satisfies Record<string, PageCall>;
export type PageCallName = keyof typeof PAGE_CALLS;

export interface PageCall {
  /** Operation id of its route. */
  id: string;
  summary: string;
  request: z.ZodType;
  result: z.ZodType;
  /** The response has a field `meta` in addition to the result. */
  hasMeta?: true;
}

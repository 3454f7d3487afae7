/** Types of the binding for browsers, for app code: prints, captures and reads pages, and crawls sites. */
import type { z } from "zod";
import type { WireUsage } from "../../../schemas/account/http/accounts.ts";
import type { CrawlRequest } from "../../../schemas/crawl/http/crawl.ts";
import type { WireCrawl, WireCrawlEntry } from "../../../schemas/crawl/http/crawl-answers.ts";
import type { PAGE_CALLS, PageCallName } from "../../../schemas/rendering/http/page-calls.ts";
import type { PdfRequest } from "../../../schemas/rendering/http/pdf.ts";
import type { ScreenshotRequest } from "../../../schemas/rendering/http/screenshot.ts";
import type { Camelized } from "./camel-case.ts";
import type { RestBinding } from "./rest-binding.ts";

/** A page by `url`, `html` or `files`, or several `sources`, with `pdfOptions`. */
export type PdfInput = z.input<typeof PdfRequest>;
/** A page by `url`, `html` or `files`, with `screenshotOptions` and an optional `selector` of one element. */
export type ScreenshotInput = z.input<typeof ScreenshotRequest>;
/** A page by `url`, `html` or `files`, with the parameters of the call. */
export type PageInput<N extends PageCallName> = z.input<(typeof PAGE_CALLS)[N]["request"]>;
export type PageResult<N extends PageCallName> = z.output<(typeof PAGE_CALLS)[N]["result"]>;
export type CrawlInput = z.input<typeof CrawlRequest>;
export type Crawl = z.output<typeof WireCrawl>;
export type CrawlEntry = z.output<typeof WireCrawlEntry>;
export type BrowserUsage = Camelized<z.output<typeof WireUsage>>;

export interface Browser extends RestBinding {
  /** The bytes of the PDF. */
  pdf(page: PdfInput): Promise<Uint8Array<ArrayBuffer>>;
  /** The picture's text in base64. */
  screenshot(
    page: ScreenshotInput & { screenshotOptions: { encoding: "base64" } },
  ): Promise<string>;
  /** The bytes of the picture. Throws ELEMENT_NOT_FOUND where the selector finds none. */
  screenshot(page: ScreenshotInput): Promise<Uint8Array<ArrayBuffer>>;
  /** The HTML after rendering. */
  content(page: PageInput<"content">): Promise<PageResult<"content">>;
  /** Front matter in YAML where the page has a title, and Markdown. */
  markdown(page: PageInput<"markdown">): Promise<PageResult<"markdown">>;
  /** Absolute addresses in the order of the page. */
  links(page: PageInput<"links">): Promise<PageResult<"links">>;
  /** Text, HTML, attributes and places of the elements that each selector of `elements` matches. */
  scrape(page: PageInput<"scrape">): Promise<PageResult<"scrape">>;
  /** Several formats of one load of the page; the picture is text in base64. */
  snapshot(page: PageInput<"snapshot">): Promise<PageResult<"snapshot">>;
  /** Data that satisfies the schema. Throws JSON_NOT_EXTRACTED where no model gave such. */
  json(page: PageInput<"json">): Promise<PageResult<"json">>;
  /** The tree is null where `root` matches nothing. */
  accessibilityTree(page: PageInput<"accessibilityTree">): Promise<PageResult<"accessibilityTree">>;
  /** Resolves with the crawl's id. */
  startCrawl(crawl: CrawlInput): Promise<string>;
  /** Returns the progress of a crawl, and its records from `cursor` on. */
  getCrawl(
    id: string,
    options?: { cursor?: string; limit?: number; status?: Crawl["records"][number]["status"] },
  ): Promise<Crawl>;
  /** The newest first. */
  listCrawls(options?: {
    cursor?: string;
    limit?: number;
    status?: Crawl["status"];
  }): Promise<{ crawls: CrawlEntry[]; cursor?: string }>;
  /** Cancels a crawl and keeps its records. Throws CONFLICT if the crawl has ended. */
  cancelCrawl(id: string): Promise<void>;
  /** Browser time used, by day. */
  usage(): Promise<BrowserUsage>;
}

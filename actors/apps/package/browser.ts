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

/** A page given by `url`, `html` or `files`, or several `sources`, with `pdfOptions`. */
export type PdfInput = z.input<typeof PdfRequest>;
/** A page given by `url`, `html` or `files`, with `screenshotOptions` and an optional `selector` of one element. */
export type ScreenshotInput = z.input<typeof ScreenshotRequest>;
/** A page given by `url`, `html` or `files`, with the parameters of the call. */
export type PageInput<N extends PageCallName> = z.input<(typeof PAGE_CALLS)[N]["request"]>;
export type PageResult<N extends PageCallName> = z.output<(typeof PAGE_CALLS)[N]["result"]>;
export type CrawlInput = z.input<typeof CrawlRequest>;
export type Crawl = z.output<typeof WireCrawl>;
export type CrawlEntry = z.output<typeof WireCrawlEntry>;
export type BrowserUsage = Camelized<z.output<typeof WireUsage>>;

export interface Browser extends RestBinding {
  /** Returns the bytes of the PDF. */
  pdf(page: PdfInput): Promise<Uint8Array<ArrayBuffer>>;
  /** Returns the image as base64 text. */
  screenshot(
    page: ScreenshotInput & { screenshotOptions: { encoding: "base64" } },
  ): Promise<string>;
  /** Returns the bytes of the image. Throws ELEMENT_NOT_FOUND if the selector matches nothing. */
  screenshot(page: ScreenshotInput): Promise<Uint8Array<ArrayBuffer>>;
  /** Returns the HTML after rendering. */
  content(page: PageInput<"content">): Promise<PageResult<"content">>;
  /** Returns the page as Markdown, with YAML front matter if the page has a title. */
  markdown(page: PageInput<"markdown">): Promise<PageResult<"markdown">>;
  /** Returns the page's links as absolute URLs, in document order. */
  links(page: PageInput<"links">): Promise<PageResult<"links">>;
  /** Returns text, HTML, attributes and positions of the elements that each selector in `elements` matches. */
  scrape(page: PageInput<"scrape">): Promise<PageResult<"scrape">>;
  /** Loads the page one time and returns it in several formats. The image is base64 text. */
  snapshot(page: PageInput<"snapshot">): Promise<PageResult<"snapshot">>;
  /**
   * Returns data extracted from the page that satisfies the schema. Throws JSON_NOT_EXTRACTED if no model returned
   * such data.
   */
  json(page: PageInput<"json">): Promise<PageResult<"json">>;
  /** Returns the accessibility tree, or null if `root` matches nothing. */
  accessibilityTree(page: PageInput<"accessibilityTree">): Promise<PageResult<"accessibilityTree">>;
  /** Resolves with the crawl's id. */
  startCrawl(crawl: CrawlInput): Promise<string>;
  /** Returns the progress of a crawl, and its records from `cursor` on. */
  getCrawl(
    id: string,
    options?: { cursor?: string; limit?: number; status?: Crawl["records"][number]["status"] },
  ): Promise<Crawl>;
  /** Lists crawls, newest first. */
  listCrawls(options?: {
    cursor?: string;
    limit?: number;
    status?: Crawl["status"];
  }): Promise<{ crawls: CrawlEntry[]; cursor?: string }>;
  /** Cancels a crawl and keeps its records. Throws CONFLICT if the crawl has ended. */
  cancelCrawl(id: string): Promise<void>;
  /** Returns the browser time used, by day. */
  usage(): Promise<BrowserUsage>;
}

/** Pages printed and captured, and sites crawled, as code of apps asks for them: no token. */
import type { z } from "zod";
import type { WireUsage } from "../../../schemas/account/http/accounts.ts";
import type { CrawlRequest } from "../../../schemas/crawl/http/crawl.ts";
import type { WireCrawl, WireCrawlEntry } from "../../../schemas/crawl/http/crawl-answers.ts";
import type { PdfRequest } from "../../../schemas/rendering/http/pdf.ts";
import type { ScreenshotRequest } from "../../../schemas/rendering/http/screenshot.ts";
import { ApiError } from "../package/api-error.ts";
import { type Camelized, camelized } from "./camel-case.ts";
import { errorReader, type RestBinding, restCalls } from "./rest-binding.ts";

/** A page by its `url` or `html`, and `pdfOptions`. */
export type PdfInput = z.input<typeof PdfRequest>;
/** A page likewise, `selector` for one element of it, and `screenshotOptions`. */
export type ScreenshotInput = z.input<typeof ScreenshotRequest>;
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
  /** Resolves with the crawl's id. */
  startCrawl(crawl: CrawlInput): Promise<string>;
  /** How far it is, and its records from `cursor` on. */
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
  /** What it has found stays. Throws CONFLICT where it has ended. */
  cancelCrawl(id: string): Promise<void>;
  /** Browser time used, by day. */
  usage(): Promise<BrowserUsage>;
}

const BELOW = "/browser-rendering";
const CRAWLS = `${BELOW}/crawl`;

export function browserBinding(binding: RestBinding): Browser {
  const calls = restCalls(binding, errorReader(ApiError));
  const rendered = (path: string, page: PdfInput | ScreenshotInput) =>
    calls.bytes(`${BELOW}/${path}`, { method: "POST", json: page });
  const bytesOf = async (response: Response) => new Uint8Array(await response.arrayBuffer());
  async function screenshot(page: ScreenshotInput): Promise<never> {
    const response = await rendered("screenshot", page);
    const asText = page.screenshotOptions?.encoding === "base64";
    // Which of the two it is, its overloads say.
    return (asText ? await response.text() : await bytesOf(response)) as never;
  }
  const pathOf = (id: string) => `${CRAWLS}/${encodeURIComponent(id)}`;
  return Object.freeze({
    namespace: binding.namespace,
    fetch: binding.fetch,
    async pdf(page: PdfInput) {
      return bytesOf(await rendered("pdf", page));
    },
    screenshot,
    startCrawl: (crawl: CrawlInput) => calls.one<string>(CRAWLS, { method: "POST", json: crawl }),
    async getCrawl(id: string, options?: Parameters<Browser["getCrawl"]>[1]) {
      // Records bear names of the web, which nobody changes.
      return calls.one<Crawl>(pathOf(id), { query: options });
    },
    async listCrawls(options?: Parameters<Browser["listCrawls"]>[0]) {
      const { result, info } = await calls.list<CrawlEntry>(CRAWLS, options);
      const { cursor } = info;
      return { crawls: result, ...(cursor !== undefined && { cursor }) };
    },
    async cancelCrawl(id: string) {
      await calls.one(pathOf(id), { method: "DELETE" });
    },
    usage: async () => camelized(await calls.one<z.output<typeof WireUsage>>(`${BELOW}/usage`)),
  });
}

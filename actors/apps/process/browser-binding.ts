/** The binding that prints, captures and reads pages and crawls sites: app code needs no token. */
import type { z } from "zod";
import type { WireUsage } from "../../../schemas/account/http/accounts.ts";
import type { PageCallName } from "../../../schemas/rendering/http/page-calls.ts";
import { ApiError } from "../package/api-error.ts";
import type {
  Browser,
  Crawl,
  CrawlEntry,
  CrawlInput,
  PageInput,
  PageResult,
  PdfInput,
  ScreenshotInput,
} from "../package/browser.ts";
import { camelized } from "../package/camel-case.ts";
import type { RestBinding } from "../package/rest-binding.ts";
import { errorReader, restCalls } from "./rest-binding.ts";

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
    // The type of the result depends on the input; the overloads of `screenshot` declare both types.
    return (asText ? await response.text() : await bytesOf(response)) as never;
  }
  const read =
    <N extends PageCallName>(name: N) =>
    (page: PageInput<N>) =>
      calls.one<PageResult<N>>(`${BELOW}/${name}`, { method: "POST", json: page });
  const pathOf = (id: string) => `${CRAWLS}/${encodeURIComponent(id)}`;
  return Object.freeze({
    namespace: binding.namespace,
    fetch: binding.fetch,
    async pdf(page: PdfInput) {
      return bytesOf(await rendered("pdf", page));
    },
    screenshot,
    content: read("content"),
    markdown: read("markdown"),
    links: read("links"),
    scrape: read("scrape"),
    snapshot: read("snapshot"),
    json: read("json"),
    accessibilityTree: read("accessibilityTree"),
    startCrawl: (crawl: CrawlInput) => calls.one<string>(CRAWLS, { method: "POST", json: crawl }),
    async getCrawl(id: string, options?: Parameters<Browser["getCrawl"]>[1]) {
      // Field names of records come from the web and are not converted.
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

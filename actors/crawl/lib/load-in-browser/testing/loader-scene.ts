/** Pages of two web sites, loaded by loaders that share one browser. */
import type { ServerResponse } from "node:http";
import { CrawlRequest } from "../../../../../schemas/crawl/http/crawl.ts";
import { openPool } from "../../../../../scripts/testing/printer.ts";
import { until } from "../../../../../scripts/testing/until.ts";
import { WebSite } from "../../../../../scripts/testing/web-site.ts";
import { systemClock } from "../../../../runtime/lib/clock.ts";
import { pageLoad, type Watched } from "../../../workers/crawl-page/testing/page-load.ts";
import type { PageAnswer } from "../../load/page-loader.ts";
import { BrowserPageLoader, type BrowserPageLoaderParts } from "../browser-page-loader.ts";

type Parameters = Partial<Record<keyof CrawlRequest, unknown>>;
type LoadedPage = Extract<PageAnswer, { kind: "page" }>;

/** Throws where the answer is no page. */
export function pageOf(answer: PageAnswer): LoadedPage {
  if (answer.kind !== "page") throw new Error(JSON.stringify(answer));
  return answer;
}

export const scriptPage = (code: string) =>
  `<!doctype html><title>here</title><p>kept</p><script>${code}</script>`;

export const answers =
  (status: number, headers: Record<string, string>, body: string | Buffer = "") =>
  (_: unknown, response: ServerResponse) => {
    response.writeHead(status, headers).end(body);
  };

export class LoaderScene implements AsyncDisposable {
  readonly pool = openPool();
  #sites: { site: WebSite; other: WebSite } | undefined;
  readonly #loaders: BrowserPageLoader[] = [];

  async start(): Promise<{ site: WebSite; other: WebSite }> {
    const [site, other] = await Promise.all([WebSite.start(), WebSite.start(), this.pool.start()]);
    this.#sites = { site, other };
    return this.#sites;
  }

  /** Opens a loader of a crawl that begins at the first site. */
  readonly open = (
    parameters: Parameters = {},
    limits: BrowserPageLoaderParts["limits"] = {},
  ): BrowserPageLoader => {
    const { pool } = this;
    const request = CrawlRequest.parse({ url: this.#sites?.site.url, ...parameters });
    const loader = new BrowserPageLoader({ pool, clock: systemClock, request, limits });
    this.#loaders.push(loader);
    return loader;
  };

  readonly load = (
    loader: BrowserPageLoader,
    url: string,
    watched: Watched = {},
  ): Promise<PageAnswer> => loader.load(pageLoad(url, watched));

  forgetRequests(): void {
    for (const site of Object.values(this.#sites ?? {})) site.requests.length = 0;
  }

  async closeLoaders(): Promise<void> {
    await Promise.all(this.#loaders.splice(0).map((loader) => loader.close()));
    await until("contexts are given back", () => this.pool.contextsInUse === 0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const sites = Object.values(this.#sites ?? {});
    await Promise.all([this.pool.close(), ...sites.map((site) => site[Symbol.asyncDispose]())]);
  }
}

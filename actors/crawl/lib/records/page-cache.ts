/** The pages that an account has fetched, for later crawls that would get the same. */
import { createHash } from "node:crypto";
import { z } from "zod";
import { RecordBlob, RecordMetadata } from "../../../../schemas/crawl/crawl-job.ts";
import type { CrawlRequest } from "../../../../schemas/crawl/http/crawl.ts";
import { CRAWL_MAX_AGE_S_MAX, PAGE_LINKS_MAX } from "../../../../schemas/crawl/limits.ts";
import { EpochMs } from "../../../../schemas/values.ts";

/** Maximum size of the links of a cached page. A page with more is not cached. */
export const CACHED_PAGE_BYTES_MAX = 256 * 1024;

/** A cached page. Its record is a blob of the job that fetched it, and outlives this entry. */
export const CachedPage = z.object({
  cachedAt: EpochMs,
  metadata: RecordMetadata,
  blobs: z.array(RecordBlob).max(2),
  jsonSource: z.string().optional(),
  links: z.array(z.string()).max(PAGE_LINKS_MAX),
  reason: z.string().optional(),
});
export type CachedPage = z.infer<typeof CachedPage>;

/** The interface of TtlStore: any value may be gone, and no call fails. */
export interface CacheStore {
  get(key: string): Promise<CachedPage | undefined>;
  put(key: string, value: CachedPage, ttlS: number): Promise<boolean>;
}

/** The cached pages that one crawl may share with others. Their keys contain everything that shapes a page. */
export class PageCache {
  readonly #store: CacheStore;
  readonly #shape: string;
  readonly #maxAgeMs: number;

  constructor(store: CacheStore, account: string, request: CrawlRequest) {
    this.#store = store;
    this.#shape = createHash("sha256").update(shapeOf(account, request)).digest("base64url");
    this.#maxAgeMs = request.maxAge * 1_000;
  }

  /** Returns a page that is recent enough for this crawl. */
  async find(url: string, now: number): Promise<CachedPage | undefined> {
    if (this.#maxAgeMs === 0) return undefined;
    const found = await this.#store.get(this.#keyOf(url));
    return found !== undefined && now - found.cachedAt < this.#maxAgeMs ? found : undefined;
  }

  async keep(url: string, page: CachedPage): Promise<void> {
    const bytes = page.links.reduce((sum, link) => sum + link.length, 0);
    if (bytes > CACHED_PAGE_BYTES_MAX) return;
    await this.#store.put(this.#keyOf(url), page, CRAWL_MAX_AGE_S_MAX);
  }

  #keyOf(url: string): string {
    return createHash("sha256").update(this.#shape).update(url).digest("hex");
  }
}

/**
 * Returns the fields of a crawl request that change the result for a page, as text. Fields that decide which pages
 * belong to the crawl are left out, and `jsonOptions`, because extracted JSON is not cached. The purposes are
 * included, because they decide whether the crawl may have the page.
 */
function shapeOf(account: string, request: CrawlRequest): string {
  const { limit, depth, source, options, maxAge, modifiedSince, jsonOptions, url, ...page } =
    request;
  const shape = {
    ...page,
    account,
    formats: request.formats.toSorted(),
    crawlPurposes: request.crawlPurposes.toSorted(),
    // A crawl of sitemaps alone does not collect links, so its pages differ.
    links: source !== "sitemaps",
    // Credentials are sent only to the start URL's origin, so with credentials the result depends on that origin.
    start: request.authenticate || request.cookies ? new URL(url).origin : "",
  };
  const entries = Object.entries(shape).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify(entries);
}

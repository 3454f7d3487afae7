/** Pages an account has fetched before, to be used again by crawls that would get the same. */
import { createHash } from "node:crypto";
import { z } from "zod";
import { RecordBlob, RecordMetadata } from "../../../../schemas/crawl/crawl-job.ts";
import type { CrawlRequest } from "../../../../schemas/crawl/http/crawl.ts";
import { CRAWL_MAX_AGE_S_MAX, PAGE_LINKS_MAX } from "../../../../schemas/crawl/limits.ts";
import { EpochMs } from "../../../../schemas/values.ts";

/** A page with more to say than this is not kept for other crawls. */
export const CACHED_PAGE_BYTES_MAX = 256 * 1024;

/** What is remembered of a page; its record is a blob of the job that fetched it, which is kept for longer. */
export const CachedPage = z.object({
  cachedAt: EpochMs,
  metadata: RecordMetadata,
  blobs: z.array(RecordBlob).max(2),
  jsonSource: z.string().optional(),
  links: z.array(z.string()).max(PAGE_LINKS_MAX),
  reason: z.string().optional(),
});
export type CachedPage = z.infer<typeof CachedPage>;

/** As TtlStore has it: any value may be gone, and no call fails. */
export interface CacheStore {
  get(key: string): Promise<CachedPage | undefined>;
  put(key: string, value: CachedPage, ttlS: number): Promise<boolean>;
}

/** The pages that one crawl may share with others: all that shapes a page is in their keys. */
export class PageCache {
  readonly #store: CacheStore;
  readonly #shape: string;
  readonly #maxAgeMs: number;

  constructor(store: CacheStore, account: string, request: CrawlRequest) {
    this.#store = store;
    this.#shape = createHash("sha256").update(shapeOf(account, request)).digest("base64url");
    this.#maxAgeMs = request.maxAge * 1_000;
  }

  /** A page that is young enough for this crawl. */
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

/** Everything of a request that a page depends on; not how far the crawl goes. Purposes decide whether it may be had. */
function shapeOf(account: string, request: CrawlRequest): string {
  const { limit, depth, source, options, maxAge, modifiedSince, jsonOptions, url, ...page } =
    request;
  const shape = {
    ...page,
    account,
    formats: request.formats.toSorted(),
    crawlPurposes: request.crawlPurposes.toSorted(),
    // Links are not looked for where they are not followed.
    links: source !== "sitemaps",
    // Credentials go to the start's host alone.
    start: request.authenticate || request.cookies ? new URL(url).origin : "",
  };
  const entries = Object.entries(shape).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify(entries);
}

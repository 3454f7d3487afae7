/** The query parameters of all rendering calls. */
import { z } from "zod";
import { RENDER_CACHE_SECONDS, RENDER_CACHE_SECONDS_MAX } from "../limits.ts";

const CacheTtl = z.coerce.number().pipe(z.number().min(0).max(RENDER_CACHE_SECONDS_MAX));
const browser = z
  .literal("chromium")
  .optional()
  .describe("The browser engine; only one is supported");

export const RenderQuery = z.strictObject({
  cacheTTL: CacheTtl.default(RENDER_CACHE_SECONDS).describe(
    "Seconds for which the same request gets the cached response, without browser time; 0: always render again",
  ),
  browser,
});
export type RenderQuery = z.output<typeof RenderQuery>;

/** Query parameters of calls about crawls, whose pages have a cache of their own. */
export const CrawlCallQuery = z.strictObject({
  cacheTTL: CacheTtl.optional().describe(
    "Accepted without effect: calls are not cached, and maxAge limits the age of pages",
  ),
  browser,
});

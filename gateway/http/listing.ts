/** Returns pages of a list that is small enough to be completely in memory. */
import type { ResultInfo } from "../../schemas/http/envelope.ts";
import type { Listing } from "../../schemas/http/listing.ts";

/** Returns one page in the direction of the query. `entries` are sorted from the oldest to the newest. */
export function pageOf<T>(entries: readonly T[], { page, per_page, direction }: Listing) {
  const ordered = direction === "asc" ? entries : entries.toReversed();
  const result = ordered.slice((page - 1) * per_page, page * per_page);
  const resultInfo: ResultInfo = {
    page,
    per_page,
    count: result.length,
    total_count: entries.length,
    total_pages: Math.ceil(entries.length / per_page),
  };
  return { result, resultInfo };
}

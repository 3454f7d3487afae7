/** Reads when a page was last modified, and whether that is before what a crawl wants. */
import type { CrawlRequest } from "../../../../schemas/crawl/http/crawl.ts";
import { documentForm } from "./content-types.ts";

type Wanted = Pick<CrawlRequest, "modifiedSince" | "source">;

/** Epoch milliseconds of `Last-Modified`; undefined where it is missing or no date. */
export function lastModifiedAt(headers: Headers): number | undefined {
  const time = Date.parse(headers.get("last-modified") ?? "");
  return Number.isFinite(time) && time >= 0 ? time : undefined;
}

/** Older than what is wanted: no record is made of it. */
export function isOlder(
  page: { status: number; lastModifiedAt: number | undefined },
  { modifiedSince }: Pick<Wanted, "modifiedSince">,
): boolean {
  if (page.status !== 200 || modifiedSince === undefined) return false;
  return page.lastModifiedAt !== undefined && page.lastModifiedAt < modifiedSince * 1_000;
}

/** Nothing of it is wanted: 304, or an older one that has no links to follow. What others link to may be newer. */
export function isUnmodified(
  { status, headers }: { status: number; headers: Headers },
  wanted: Wanted,
): boolean {
  if (status === 304) return true;
  const hasLinks = documentForm(headers.get("content-type") ?? undefined) === "html";
  const isRead = hasLinks && wanted.source !== "sitemaps";
  return !isRead && isOlder({ status, lastModifiedAt: lastModifiedAt(headers) }, wanted);
}

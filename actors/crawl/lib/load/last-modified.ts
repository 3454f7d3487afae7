/** Reads when a page was last modified, and compares it with `modifiedSince`. */
import type { CrawlRequest } from "../../../../schemas/crawl/http/crawl.ts";
import { documentForm } from "./content-types.ts";

type Wanted = Pick<CrawlRequest, "modifiedSince" | "source">;

/** Returns `Last-Modified` in epoch milliseconds; undefined where it is missing or not a date. */
export function lastModifiedAt(headers: Headers): number | undefined {
  const time = Date.parse(headers.get("last-modified") ?? "");
  return Number.isFinite(time) && time >= 0 ? time : undefined;
}

/** Whether the page was last modified before `modifiedSince`, so that it is skipped. */
export function isOlder(
  page: { status: number; lastModifiedAt: number | undefined },
  { modifiedSince }: Pick<Wanted, "modifiedSince">,
): boolean {
  if (page.status !== 200 || modifiedSince === undefined) return false;
  return page.lastModifiedAt !== undefined && page.lastModifiedAt < modifiedSince * 1_000;
}

/**
 * Whether the body of the page is not needed: the response is a 304, or an older document whose links are not
 * followed. Links of an older page must be followed, because they may lead to newer pages.
 */
export function isUnmodified(
  { status, headers }: { status: number; headers: Headers },
  wanted: Wanted,
): boolean {
  if (status === 304) return true;
  const hasLinks = documentForm(headers.get("content-type") ?? undefined) === "html";
  const isRead = hasLinks && wanted.source !== "sitemaps";
  return !isRead && isOlder({ status, lastModifiedAt: lastModifiedAt(headers) }, wanted);
}

/** Reads when a page was last modified, and whether that is before what a crawl wants. */

/** Epoch milliseconds of `Last-Modified`; undefined where it is missing or no date. */
export function lastModifiedAt(headers: Headers): number | undefined {
  const time = Date.parse(headers.get("last-modified") ?? "");
  return Number.isFinite(time) && time >= 0 ? time : undefined;
}

/** 304, or a page that is older than `modifiedSince` (Unix seconds). */
export function isUnmodified(
  { status, headers }: { status: number; headers: Headers },
  modifiedSince: number | undefined,
): boolean {
  if (status === 304) return true;
  const at = lastModifiedAt(headers);
  if (status !== 200 || modifiedSince === undefined || at === undefined) return false;
  return at < modifiedSince * 1_000;
}

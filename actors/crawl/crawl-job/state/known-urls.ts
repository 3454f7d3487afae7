/** Which addresses a job knows: rows of a number fixed at its start, found by hash, so that one more costs the same however many. */
import { hash } from "node:crypto";
import { KNOWN_PER_ROW, KNOWN_ROWS_MAX, KNOWN_ROWS_MIN } from "../../../../schemas/crawl/limits.ts";
import { crawlUrlKey } from "../../lib/scope/crawl-url.ts";
import type { JobDraft } from "./job-draft.ts";

/** Pages and sitemaps are apart: an address may be either. */
type KnownAs = "page" | "sitemap";

/** How many rows a job of so many pages has: what its messages add falls into few of them where there are few pages. */
export function knownRows(limit: number): number {
  const rows = 2 ** Math.ceil(Math.log2(limit / KNOWN_PER_ROW));
  return Math.min(KNOWN_ROWS_MAX, Math.max(KNOWN_ROWS_MIN, rows));
}

/** The index of the record, or the number of the sitemap, that has this address. */
export function knownIndex(draft: JobDraft, as: KnownAs, url: string): number | undefined {
  const { bucket, entry } = placeOf(draft, as, url);
  const known = draft.findRow("known", bucket)?.known ?? "";
  const start = known.indexOf(entry);
  if (start === -1) return undefined;
  const end = known.indexOf(" ", start + 1);
  const digits = known.slice(start + entry.length, end === -1 ? undefined : end);
  return Number.parseInt(digits, 36);
}

export function addKnown(draft: JobDraft, as: KnownAs, url: string, index: number): void {
  const { bucket, entry } = placeOf(draft, as, url);
  const known = draft.findRow("known", bucket)?.known ?? "";
  draft.write(bucket, { type: "known", known: `${known}${entry}${index.toString(36)}` });
}

/**
 * 16 bits choose the row; 52 more tell its addresses apart: among 100,000 two are taken for one in 1 of 10^9 jobs. With
 * the job's id in it no site can choose addresses that fill one row.
 */
function placeOf(
  { key, state }: JobDraft,
  as: KnownAs,
  url: string,
): { bucket: string; entry: string } {
  const digest = hash("sha256", `${key} ${as} ${crawlUrlKey(url)}`, "hex");
  const rows = state.knownRows ?? KNOWN_ROWS_MAX;
  const bucket = Math.floor((Number.parseInt(digest.slice(0, 4), 16) * rows) / 2 ** 16);
  return { bucket: `u/${bucket}`, entry: ` ${digest.slice(4, 17)}=` };
}

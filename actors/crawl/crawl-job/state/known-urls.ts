/**
 * The addresses that a job knows, in a fixed number of rows. A hash of the address selects its row, so adding an
 * address costs the same however many are known.
 */
import { hash } from "node:crypto";
import { KNOWN_ROWS_MAX } from "../../../../schemas/crawl/limits.ts";
import { crawlUrlKey } from "../../lib/scope/crawl-url.ts";
import type { JobDraft } from "./job-draft.ts";

/**
 * The job gets one row of known addresses for this number of pages of its page limit. Each new address rewrites one
 * row. A row for 16 pages has 300 bytes. Such a row has 6 kB if the job skips the maximum number of addresses and
 * every page redirects ten times. With fewer pages per row, the addresses of one message would rewrite more rows, and
 * a takeover would read more rows.
 */
export const KNOWN_PER_ROW = 16;
/** Lowest number of rows of known addresses. */
export const KNOWN_ROWS_MIN = 64;

/** An address may be both a page and a sitemap. */
type KnownAs = "page" | "sitemap";

/** Returns the number of rows for a page limit. Small jobs have few rows, so that one message writes few of them. */
export function knownRows(limit: number): number {
  const rows = 2 ** Math.ceil(Math.log2(limit / KNOWN_PER_ROW));
  return Math.min(KNOWN_ROWS_MAX, Math.max(KNOWN_ROWS_MIN, rows));
}

/** Returns the index of the record, or the number of the sitemap, with this address. */
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
 * Returns the row and the entry of an address. 16 bits of the hash select the row; 52 more bits distinguish the row's
 * addresses. Among 100,000 addresses, two collide in one of 10^9 jobs. The hash includes the job's id, so that no
 * site can choose addresses that fall into the same row.
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

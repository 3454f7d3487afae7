/** Which addresses a job knows: a fixed number of rows, found by hash, so that one more costs the same however many. */
import { hash } from "node:crypto";
import { crawlUrlKey } from "./crawl-url.ts";
import type { JobDraft } from "./job-draft.ts";

/** Pages and sitemaps are apart: an address may be either. */
export type KnownAs = "page" | "sitemap";

/** The index of the record, or the number of the sitemap, that has this address. */
export function knownIndex(draft: JobDraft, as: KnownAs, url: string): number | undefined {
  const { bucket, entry } = placeOf(draft, as, url);
  const known = draft.find("known", bucket)?.known ?? "";
  const start = known.indexOf(entry);
  if (start === -1) return undefined;
  const end = known.indexOf(" ", start + 1);
  const digits = known.slice(start + entry.length, end === -1 ? undefined : end);
  return Number.parseInt(digits, 36);
}

export function addKnown(draft: JobDraft, as: KnownAs, url: string, index: number): void {
  const { bucket, entry } = placeOf(draft, as, url);
  const known = draft.find("known", bucket)?.known ?? "";
  draft.set(bucket, { type: "known", known: `${known}${entry}${index.toString(36)}` });
}

/**
 * 14 bits choose one of 16,384 rows, which at 100,000 addresses hold 6 each; 52 more tell those apart: among 100,000 two
 * are taken for one in 1 of 10^10 jobs. With the job's id in it no site can choose addresses that fill one row.
 */
function placeOf({ key }: JobDraft, as: KnownAs, url: string): { bucket: string; entry: string } {
  const digest = hash("sha256", `${key} ${as} ${crawlUrlKey(url)}`, "hex");
  const bucket = Number.parseInt(digest.slice(0, 4), 16) >> 2;
  return { bucket: `u/${bucket}`, entry: ` ${digest.slice(4, 17)}=` };
}

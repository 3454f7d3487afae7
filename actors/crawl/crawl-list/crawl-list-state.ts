/** The stored list of an account's crawl jobs. */
import { z } from "zod";
import { CrawlListEntry } from "../../../schemas/crawl/crawl-list.ts";
import { EpochMs } from "../../../schemas/values.ts";

export const CrawlListState = z.object({
  /** Number of the next job. */
  next: z.int().min(0),
  running: z.int().min(0),
  kept: z.int().min(0),
  /** Times of admissions without a start. They count as running. */
  admitted: z.array(EpochMs),
});
export type CrawlListState = z.infer<typeof CrawlListState>;

/** A job, in the row of its id. Numbers only grow, so a cursor stays valid while jobs come and go. */
export const CrawlListRow = CrawlListEntry.extend({ number: z.int().min(0) });
export type CrawlListRow = z.infer<typeof CrawlListRow>;

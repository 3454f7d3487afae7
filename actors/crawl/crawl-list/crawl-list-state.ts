/** What is kept of an account's crawl jobs. */
import { z } from "zod";
import { CrawlListEntry } from "../../../schemas/crawl/crawl-list.ts";
import { EpochMs } from "../../../schemas/values.ts";

export const CrawlListState = z.object({
  /** The number the next job gets. */
  next: z.int().min(0),
  running: z.int().min(0),
  kept: z.int().min(0),
  /** When jobs were admitted that have not started yet: they count as running. */
  admitted: z.array(EpochMs),
});
export type CrawlListState = z.infer<typeof CrawlListState>;

/** A job, in the row of its id. Numbers grow, so that a place in the list stays while jobs come and go. */
export const CrawlListRow = CrawlListEntry.extend({ number: z.int().min(0) });
export type CrawlListRow = z.infer<typeof CrawlListRow>;

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
  /** Sum of the bytes in all rows. Absent until a job starts or reports bytes, and after a host of an earlier version. */
  bytes: z.int().min(0).optional(),
  /** Bytes that the account's jobs may store, from the latest admission; 0 means no limit. */
  bytesMax: z.int().min(0).optional(),
});
export type CrawlListState = z.infer<typeof CrawlListState>;

/** A job, in the row of its id. Numbers only grow, so a cursor stays valid while jobs come and go. */
export const CrawlListRow = CrawlListEntry.extend({
  number: z.int().min(0),
  /** Bytes of the job's results, and of its request while it runs. Jobs of older versions have none. */
  bytes: z.int().min(0).optional(),
  requestBytes: z.int().min(0).optional(),
  /** Hosts at which a running job may want requests at the same time. Without a number, it is CRAWL_HOSTS_MAX. */
  hostsMax: z.int().min(1).optional(),
});
export type CrawlListRow = z.infer<typeof CrawlListRow>;

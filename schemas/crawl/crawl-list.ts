/**
 * Messages of the actor crawl list, which lists the crawl jobs of an account and limits their number. The key is the
 * account's id.
 */
import { z } from "zod";
import { defineContract } from "../contract.ts";
import { PAGE_ENTRIES_MAX } from "../limits.ts";
import { EpochMs, Id } from "../values.ts";
import { CrawlStatus } from "./crawl-job.ts";

/** Counts of an ended job. Jobs that ended before these fields existed have none. */
const counts = {
  total: z.int().min(0).optional(),
  finished: z.int().min(0).optional(),
  skipped: z.int().min(0).optional(),
};

export const CrawlListEntry = z.object({
  id: Id,
  url: z.string(),
  status: CrawlStatus,
  createdAt: EpochMs,
  endedAt: EpochMs.optional(),
  ...counts,
});
export type CrawlListEntry = z.infer<typeof CrawlListEntry>;

const Nothing = z.object({});

export const crawlList = defineContract({
  kind: "crawl-list",
  messages: {
    /** Reserves a place for a new job. Refuses when too many jobs of the account run or are kept. */
    admit: { input: Nothing, reply: Nothing },
    /**
     * Reports that a job has started. `createdAt` is the time by the job's clock. Jobs of older versions do not send
     * it; then the time of this message counts.
     */
    started: { input: z.object({ id: Id, url: z.string(), createdAt: EpochMs.optional() }) },
    ended: {
      input: z.object({ id: Id, status: CrawlStatus, endedAt: EpochMs.optional(), ...counts }),
    },
    expired: { input: z.object({ id: Id }) },
    /** Lists jobs, newest first. */
    list: {
      input: z.object({
        cursor: z.string().max(128).optional(),
        status: CrawlStatus.optional(),
        count: z.int().min(1).max(PAGE_ENTRIES_MAX),
      }),
      reply: z.object({ entries: z.array(CrawlListEntry), cursor: z.string().optional() }),
    },
  },
});

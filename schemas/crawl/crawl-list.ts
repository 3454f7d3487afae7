/**
 * Messages of the actor crawl list, which lists the crawl jobs of an account and limits their number and their bytes.
 * The key is the account's id.
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

const Bytes = z.int().min(0);

export const crawlList = defineContract({
  kind: "crawl-list",
  messages: {
    /**
     * Reserves a place for a new job. Refuses with `limit_reached` when too many jobs of the account run or are kept, and
     * with `storage_full` when they store `bytesMax` bytes. If it does not refuse, `bytesMax` also limits the account's
     * running jobs from now on. 0 means no limit. Gateways of older versions do not send it. Replies with the number of
     * hosts at which the job may want requests at the same time; lists of older versions do not say it.
     */
    admit: {
      input: z.object({ bytesMax: Bytes.optional() }),
      reply: z.object({ hostsMax: z.int().min(1).optional() }),
    },
    /**
     * Reports that a job has started. `createdAt` is the time by the job's clock; without it, the time of this message
     * counts. `requestBytes` are the bytes of the job's request, which is removed when the job ends. Jobs of older
     * versions do not send these fields.
     */
    started: {
      input: z.object({
        id: Id,
        url: z.string(),
        createdAt: EpochMs.optional(),
        requestBytes: Bytes.optional(),
      }),
    },
    /** Reports the bytes of all results of a job so far. */
    grown: { input: z.object({ id: Id, bytes: Bytes }) },
    /** `bytes` are those of all results of the job. */
    ended: {
      input: z.object({
        id: Id,
        status: CrawlStatus,
        endedAt: EpochMs.optional(),
        bytes: Bytes.optional(),
        ...counts,
      }),
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

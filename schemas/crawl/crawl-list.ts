/** The contract of an account's crawl jobs: which there are, and how many run. The key is the account's id. */
import { z } from "zod";
import { defineContract } from "../contract.ts";
import { PAGE_ENTRIES_MAX } from "../limits.ts";
import { EpochMs, Id } from "../values.ts";
import { CrawlStatus } from "./crawl-job.ts";

export const CrawlListEntry = z.object({
  id: Id,
  url: z.string(),
  status: CrawlStatus,
  createdAt: EpochMs,
  endedAt: EpochMs.optional(),
});
export type CrawlListEntry = z.infer<typeof CrawlListEntry>;

const Nothing = z.object({});

export const crawlList = defineContract({
  kind: "crawl-list",
  messages: {
    /** Refuses when the account has as many jobs running, or kept, as it may. */
    admit: { input: Nothing, reply: Nothing },
    /** From a job, with its own times; without one it is now. */
    started: { input: z.object({ id: Id, url: z.string(), createdAt: EpochMs.optional() }) },
    ended: { input: z.object({ id: Id, status: CrawlStatus, endedAt: EpochMs.optional() }) },
    expired: { input: z.object({ id: Id }) },
    /** Newest first. */
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

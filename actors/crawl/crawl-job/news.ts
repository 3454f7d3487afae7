/** Builds the live update that shows clients what a message has changed in the job. */
import type { DeepReadonly } from "../../../schemas/contract.ts";
import type { CrawlNews } from "../../../schemas/crawl/crawl-job.ts";
import { CRAWL_NEWS_PAGES_MAX } from "../../../schemas/crawl/limits.ts";
import { entryOf, summaryOf } from "./records.ts";
import type { CrawlJobState } from "./state/crawl-job-state.ts";
import type { JobDraft } from "./state/job-draft.ts";

/** Returns nothing if the update would show no difference. Pages past CRAWL_NEWS_PAGES_MAX are only in the counts. */
export function newsOf(draft: JobDraft, before: DeepReadonly<CrawlJobState>): { live?: CrawlNews } {
  const { status, total, finished, skipped } = summaryOf(draft);
  const isSame =
    before.status === status &&
    before.total === total &&
    before.finished === finished &&
    before.skipped === skipped;
  if (isSame && draft.settled.length === 0) return {};
  const pages = draft.settled.slice(0, CRAWL_NEWS_PAGES_MAX).map((index) => {
    const { url, status, metadata } = entryOf(draft, index);
    const { status: httpStatus } = metadata ?? {};
    return { index, url, status, ...(httpStatus !== undefined && { httpStatus }) };
  });
  return { live: { status, total, finished, skipped, pages } };
}

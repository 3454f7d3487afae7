/** Chooses the fetched pages from which models extract JSON now. The job's other fetched pages wait in a queue. */
import type { DeepReadonly } from "../../../schemas/contract.ts";
import { envelope } from "../../../schemas/contract.ts";
import { crawlPage } from "../../../schemas/crawl/crawl-page.ts";
import type { CrawlJobState, PageRow } from "./state/crawl-job-state.ts";
import type { JobDraft } from "./state/job-draft.ts";
import { hostsMax } from "./state/open-hosts.ts";
import { pageOf, writePage } from "./state/page-rows.ts";

/**
 * Maximum JSON tasks of one job at the same time: the capacity of two workers. A job with fewer hosts than that has
 * fewer tasks too, so the tasks of all jobs of an account fit its queue.
 */
export const JOB_JSON_TASKS_MAX = 16;

type Page = DeepReadonly<PageRow>;
type Extractions = DeepReadonly<NonNullable<CrawlJobState["extractions"]>>;

const extractionsOf = ({ state }: JobDraft): Extractions => state.extractions ?? { asked: 0 };

/** Appends a fetched page to the queue of pages that need JSON. */
export function extract(draft: JobDraft, index: number, page: Page, jsonSource: string): void {
  writePage(draft, index, { ...page, status: "extracting", jsonSource });
  const { first = index, last, ...others } = extractionsOf(draft);
  if (last !== undefined) writePage(draft, last, { ...pageOf(draft, last), next: index });
  draft.state.extractions = { ...others, first, last: index };
  askNext(draft);
}

/** Counts a JSON task that has ended, and sends the task of the next page in the queue. */
export function endExtraction(draft: JobDraft): void {
  const { asked, ...others } = extractionsOf(draft);
  draft.state.extractions = { ...others, asked: Math.max(0, asked - 1) };
  askNext(draft);
}

/**
 * Sends JSON tasks of queued pages until the job has its most. One transition can send JOB_JSON_TASKS_MAX tasks, even
 * with the longest addresses.
 */
function askNext(draft: JobDraft): void {
  const { account } = draft.state;
  const most = Math.min(JOB_JSON_TASKS_MAX, hostsMax(draft));
  for (;;) {
    const { asked, first: index, last } = extractionsOf(draft);
    if (index === undefined || asked >= most) return;
    const { next, jsonSource = "", ...page } = pageOf(draft, index);
    writePage(draft, index, page);
    const rest = next === undefined || last === undefined ? {} : { first: next, last };
    draft.state.extractions = { asked: asked + 1, ...rest };
    const url = page.metadata?.url ?? page.url;
    const task = { account, job: draft.key, index, url, blob: jsonSource };
    draft.send(envelope(crawlPage, account, "json", task));
  }
}

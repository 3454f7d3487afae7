/** Which pages models are asked about: so many at once, and the others of the job wait in the order in which they came. */
import type { DeepReadonly } from "../../../schemas/contract.ts";
import { envelope } from "../../../schemas/contract.ts";
import { crawlPage } from "../../../schemas/crawl/crawl-page.ts";
import type { CrawlJobState, PageRow } from "./state/crawl-job-state.ts";
import type { JobDraft } from "./state/job-draft.ts";
import { pageOf, pageRow } from "./state/pages.ts";

/** Pages of one job that models are asked about at once: two workers' worth, so that a large crawl fills no lane and others go on. */
export const JOB_JSON_TASKS_MAX = 16;

type Page = DeepReadonly<PageRow>;
type Extractions = DeepReadonly<NonNullable<CrawlJobState["extractions"]>>;

const extractionsOf = ({ state }: JobDraft): Extractions => state.extractions ?? { asked: 0 };

/** Of a page that has been fetched: it waits for its JSON, and where others do, for its task. */
export function extract(draft: JobDraft, index: number, page: Page, jsonSource: string): void {
  draft.write(pageRow(index), { ...page, status: "extracting", jsonSource });
  const { first = index, last, ...others } = extractionsOf(draft);
  if (last !== undefined) draft.write(pageRow(last), { ...pageOf(draft, last), next: index });
  draft.state.extractions = { ...others, first, last: index };
  askNext(draft);
}

/** The page's JSON is there or will never be: the next one is asked about. */
export function endExtraction(draft: JobDraft): void {
  const { asked, ...others } = extractionsOf(draft);
  draft.state.extractions = { ...others, asked: Math.max(0, asked - 1) };
  askNext(draft);
}

/** All of them together have room in one message, however long their addresses are. */
function askNext(draft: JobDraft): void {
  const { account } = draft.state;
  for (;;) {
    const { asked, first: index, last } = extractionsOf(draft);
    if (index === undefined || asked >= JOB_JSON_TASKS_MAX) return;
    const { next, jsonSource = "", ...page } = pageOf(draft, index);
    draft.write(pageRow(index), page);
    const rest = next === undefined || last === undefined ? {} : { first: next, last };
    draft.state.extractions = { asked: asked + 1, ...rest };
    const url = page.metadata?.url ?? page.url;
    const task = { account, job: draft.key, index, url, blob: jsonSource };
    draft.send(envelope(crawlPage, draft.key, "json", task));
  }
}

/** Takes in what a turn reports: first what became of its pages, then what they link to. */
import type { PageOutcome } from "../../../schemas/crawl/crawl-job.ts";
import { discover } from "./discovery/backlog.ts";
import { foundLinks } from "./links.ts";
import { isUnreachable, settle } from "./settle.ts";
import type { JobDraft } from "./state/job-draft.ts";

/** What ends the job comes last: pages that were fetched before it are kept. */
export function settleAll(draft: JobDraft, outcomes: readonly PageOutcome[]): void {
  for (const outcome of outcomes.toSorted(byEnd)) if (draft.isRunning) settle(draft, outcome);
  if (!draft.isRunning) return;
  for (const { depth, found } of foundLinks(draft, outcomes)) {
    discover(draft, "links", depth, found);
  }
}

const endsJob = (outcome: PageOutcome) => {
  if (outcome.kind === "out_of_time") return true;
  return outcome.index === 0 && (outcome.kind === "failed" || isUnreachable(outcome));
};

const byEnd = (one: PageOutcome, other: PageOutcome) =>
  Number(endsJob(one)) - Number(endsJob(other));

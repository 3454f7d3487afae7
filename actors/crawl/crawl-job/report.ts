/** Takes the report of a turn: first the outcomes of its pages, then their links. */
import type { PageOutcome } from "../../../schemas/crawl/crawl-job.ts";
import { discover } from "./discovery/backlog.ts";
import { foundLinks } from "./links.ts";
import { isUnreachable, settle } from "./settle.ts";
import type { JobDraft } from "./state/job-draft.ts";

/**
 * Settles the pages of a report. Outcomes that end the job come last, so that the other pages of the report still get
 * their records.
 */
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

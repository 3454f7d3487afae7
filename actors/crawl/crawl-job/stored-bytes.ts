/** Counts the bytes of a job's results in their stream, and reports them to the account's list of crawls. */
import { type DeepReadonly, envelope } from "../../../schemas/contract.ts";
import { crawlList } from "../../../schemas/crawl/crawl-list.ts";
import { CRAWL_BYTES_STEP, CRAWL_BYTES_STEP_SHARE } from "../../../schemas/crawl/limits.ts";
import { endJob } from "./end-job.ts";
import type { CrawlJobState } from "./state/crawl-job-state.ts";
import type { JobDraft } from "./state/job-draft.ts";

type Stored = DeepReadonly<NonNullable<CrawlJobState["stored"]>>;

/** Returns the count of a new job. `bytesMax` is the limit of its account; 0 means no limit. */
export function nothingStored(bytesMax = 0): Stored {
  const step = bytesMax === 0 ? CRAWL_BYTES_STEP : Math.ceil(bytesMax * CRAWL_BYTES_STEP_SHARE);
  return { bytes: 0, reported: 0, step };
}

/**
 * Adds bytes to the job's count. Reports the count if it has grown by a step. An ended job reports each growth, because
 * no later message would report it.
 */
export function countStored(draft: JobDraft, bytes: number): void {
  if (bytes === 0) return;
  const { account, stored = nothingStored() } = draft.state;
  const counted = { ...stored, bytes: stored.bytes + bytes };
  const isDue = !draft.isRunning || counted.bytes - counted.reported >= counted.step;
  draft.state.stored = isDue ? { ...counted, reported: counted.bytes } : counted;
  if (!isDue) return;
  draft.send(envelope(crawlList, account, "grown", { id: draft.key, bytes: counted.bytes }));
}

/** Ends a job whose account stores more than it may. */
export function endWithoutRoom(draft: JobDraft, reason: string): void {
  draft.state.stored = { ...(draft.state.stored ?? nothingStored()), isFull: true };
  endJob(draft, "cancelled_due_to_limits", [reason]);
}

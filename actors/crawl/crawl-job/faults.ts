/** Lasting faults of ours, such as a full store. The job pauses the host, and ends where that does not help. */
import {
  CRAWL_TRIES_MAX,
  SITE_FULL_RETRY_MS,
  SITES_FULL_MAX,
} from "../../../schemas/crawl/limits.ts";
import { endJob } from "./end-job.ts";
import type { JobDraft } from "./state/job-draft.ts";
import { postpone } from "./wanted-requests.ts";

/** Pause of a host after a fault of ours. It doubles each time, up to SITE_FULL_RETRY_MS. */
export const FAULT_RETRY_MS = 5_000;
/**
 * A job ends after this long if every turn failed by a fault of ours: a full store, or browsers that do not start.
 */
export const JOB_FAULTS_MS_MAX = 600_000;

/** Records a turn that ended by a fault of ours. No page is the cause. */
export function recordFault(draft: JobDraft, host: string, fault: string): void {
  const { since = draft.now, turns = 0 } = draft.state.faults ?? {};
  const minutes = Math.floor((draft.now - since) / 60_000);
  if (turns + 1 >= CRAWL_TRIES_MAX && draft.now - since >= JOB_FAULTS_MS_MAX) {
    endJob(draft, "errored", [`No page was fetched for ${minutes} minutes: ${fault}`]);
    return;
  }
  draft.state.faults = { since, turns: turns + 1 };
  const { fullHosts = [] } = draft.state;
  // A crawl of very many hosts continues at the others without a pause.
  if (fullHosts.includes(host) || fullHosts.length >= SITES_FULL_MAX / 2) return;
  postpone(draft, host, Math.min(FAULT_RETRY_MS * 2 ** turns, SITE_FULL_RETRY_MS));
}

/** Ends the count of faults when a page has arrived. */
export function clearFaults({ state }: JobDraft): void {
  delete state.faults;
}

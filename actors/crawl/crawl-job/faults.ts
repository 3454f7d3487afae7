/**
 * Faults of this platform that last, such as a full store. The job pauses the host where a turn failed. If pauses do
 * not help, the job ends.
 */
import {
  CRAWL_TRIES_MAX,
  SITE_FULL_RETRY_MS,
  SITES_FULL_MAX,
} from "../../../schemas/crawl/limits.ts";
import { endJob } from "./end-job.ts";
import type { JobDraft } from "./state/job-draft.ts";
import { postpone } from "./wanted-requests.ts";

/**
 * First pause of a host after a fault of this platform. Each further fault of the job doubles the pause, up to
 * SITE_FULL_RETRY_MS, until a page is fetched.
 */
export const FAULT_RETRY_MS = 5_000;
/**
 * A job ends if no page was fetched for this long and CRAWL_TRIES_MAX turns or more failed by a fault of this
 * platform. Such faults are a full store, or browsers that do not start.
 */
export const JOB_FAULTS_MS_MAX = 600_000;

/** Records a turn that ended by a fault of this platform. Does not count it as a failed attempt of any page. */
export function recordFault(draft: JobDraft, host: string, fault: string): void {
  const { since = draft.now, turns = 0 } = draft.state.faults ?? {};
  const minutes = Math.floor((draft.now - since) / 60_000);
  if (turns + 1 >= CRAWL_TRIES_MAX && draft.now - since >= JOB_FAULTS_MS_MAX) {
    endJob(draft, "errored", [`No page was fetched for ${minutes} minutes: ${fault}`]);
    return;
  }
  draft.state.faults = { since, turns: turns + 1 };
  const { fullHosts = [] } = draft.state;
  // If half of SITES_FULL_MAX hosts are paused already, this host is not paused too. With SITES_FULL_MAX paused
  // hosts, the next full site would end the job.
  if (fullHosts.includes(host) || fullHosts.length >= SITES_FULL_MAX / 2) return;
  postpone(draft, host, Math.min(FAULT_RETRY_MS * 2 ** turns, SITE_FULL_RETRY_MS));
}

/** Ends the count of faults when a page has arrived. */
export function clearFaults({ state }: JobDraft): void {
  delete state.faults;
}

/** Faults of ours that last, as a store that is full: the job goes on at the host later, and ends where that does not help. */
import {
  CRAWL_TRIES_MAX,
  SITE_FULL_RETRY_MS,
  SITES_FULL_MAX,
} from "../../../schemas/crawl/limits.ts";
import { endJob } from "./end-job.ts";
import type { JobDraft } from "./state/job-draft.ts";
import { postpone } from "./wanted-requests.ts";

/** A job goes on at a host so long after a fault of ours, and after twice as long each time, up to SITE_FULL_RETRY_MS. */
export const FAULT_RETRY_MS = 5_000;
/** A job ends when turns have ended by faults of ours for so long and no page has come: a full store, browsers that do not start. */
export const JOB_FAULTS_MS_MAX = 600_000;

/** A turn has ended by one, and no page is to blame. */
export function takeFault(draft: JobDraft, host: string, fault: string): void {
  const { since = draft.now, turns = 0 } = draft.state.faults ?? {};
  const minutes = Math.floor((draft.now - since) / 60_000);
  if (turns + 1 >= CRAWL_TRIES_MAX && draft.now - since >= JOB_FAULTS_MS_MAX) {
    endJob(draft, "errored", [`No page was fetched for ${minutes} minutes: ${fault}`]);
    return;
  }
  draft.state.faults = { since, turns: turns + 1 };
  const { fullHosts = [] } = draft.state;
  // A crawl of more hosts goes on at the others without a pause.
  if (fullHosts.includes(host) || fullHosts.length >= SITES_FULL_MAX / 2) return;
  postpone(draft, host, Math.min(FAULT_RETRY_MS * 2 ** turns, SITE_FULL_RETRY_MS));
}

/** A page has come: there is none. */
export function forgetFaults({ state }: JobDraft): void {
  delete state.faults;
}

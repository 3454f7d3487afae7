/** Ends a job. Unsettled pages keep their rows; they count as cancelled because the job has ended. */
import { envelope } from "../../../schemas/contract.ts";
import type { CrawlStatus } from "../../../schemas/crawl/crawl-job.ts";
import { crawlList } from "../../../schemas/crawl/crawl-list.ts";
import { crawlPage } from "../../../schemas/crawl/crawl-page.ts";
import { CRAWL_KEPT_MS } from "../../../schemas/crawl/limits.ts";
import { backlogIsEmpty } from "./discovery/backlog.ts";
import { sitemapsAreAwaited } from "./discovery/sitemaps.ts";
import type { JobDraft } from "./state/job-draft.ts";
import { finishedPages } from "./state/pages.ts";

/**
 * Ends the job with this status. Later reports, turns and reminders do not change the job, except for the reminder
 * `expire`, which deletes it.
 */
export function endJob(
  draft: JobDraft,
  status: Exclude<CrawlStatus, "running">,
  messages: readonly string[] = [],
): void {
  const { state, now } = draft;
  state.status = status;
  state.endedAt = now;
  state.messages = [...state.messages, ...messages];
  // All pages that the end of the job cancels share one settlement number.
  state.settled += 1;
  draft.remind("timeOut", null);
  if (state.fullHosts !== undefined) draft.remind("askAgain", null);
  draft.remind("expire", now + CRAWL_KEPT_MS);
  const counts = { total: state.total, finished: finishedPages(state), skipped: state.skipped };
  const bytes = state.stored && { bytes: state.stored.bytes };
  const ended = { id: draft.key, status, endedAt: now, ...counts, ...bytes };
  draft.send(envelope(crawlList, state.account, "ended", ended));
  // Deletes the blob of the crawl request: it may hold credentials, and no later step needs it. Workers drop the
  // pages in flight of an ended job.
  draft.send(envelope(crawlPage, state.account, "purge", { job: draft.key, only: "request" }));
  for (const { origin } of state.homes) draft.touchedHosts.add(new URL(origin).host);
}

/** Ends a crawl whose start URL could not be fetched. */
export function endWithoutStart(draft: JobDraft, reason: string): void {
  endJob(draft, "errored", [`The start URL could not be fetched: ${reason}`]);
}

/**
 * Completes a job if nothing is queued or in flight and no page can be added. No page can be added if the page limit
 * is reached, or if no sitemap is awaited and the backlog is empty.
 */
export function endIfDone(draft: JobDraft): void {
  const { queued, inFlight } = draft.state;
  if (queued > 0 || inFlight > 0) return;
  const mayGrow = sitemapsAreAwaited(draft) || !backlogIsEmpty(draft);
  if (draft.pagesLeft <= 0 || !mayGrow) endJob(draft, "completed");
}

/** How a job ends. Its pages that wait or are under way are not touched: they are cancelled because the job has ended. */
import { envelope } from "../../../schemas/contract.ts";
import type { CrawlStatus } from "../../../schemas/crawl/crawl-job.ts";
import { crawlList } from "../../../schemas/crawl/crawl-list.ts";
import { crawlPage } from "../../../schemas/crawl/crawl-page.ts";
import { CRAWL_KEPT_MS } from "../../../schemas/crawl/limits.ts";
import { backlogIsEmpty } from "./discovery/backlog.ts";
import { sitemapsAreAwaited } from "./discovery/sitemaps.ts";
import type { JobDraft } from "./state/job-draft.ts";
import { finishedPages } from "./state/pages.ts";

/** Later reports, turns and reminders find a job that does not run, and change nothing. */
export function endJob(
  draft: JobDraft,
  status: Exclude<CrawlStatus, "running">,
  messages: readonly string[] = [],
): void {
  const { state, now } = draft;
  state.status = status;
  state.endedAt = now;
  state.messages = [...state.messages, ...messages];
  // The number under which all that is cancelled now counts as settled.
  state.settled += 1;
  draft.remind("timeOut", null);
  if (state.fullHosts !== undefined) draft.remind("askAgain", null);
  draft.remind("expire", now + CRAWL_KEPT_MS);
  const counts = { total: state.total, finished: finishedPages(state), skipped: state.skipped };
  const ended = { id: draft.key, status, endedAt: now, ...counts };
  draft.send(envelope(crawlList, state.account, "ended", ended));
  // It may hold credentials, and nobody needs it any more: what is still under way is dropped.
  draft.send(envelope(crawlPage, draft.key, "purge", { job: draft.key, only: "request" }));
  for (const { origin } of state.homes) draft.touchedHosts.add(new URL(origin).host);
}

/** A crawl whose start nobody could fetch has nothing to go by. */
export function endWithoutStart(draft: JobDraft, reason: string): void {
  endJob(draft, "errored", [`The start URL could not be fetched: ${reason}`]);
}

/** Nothing is queued or under way, and nothing can come: no sitemap is awaited, or there is no room for what it lists. */
export function endIfDone(draft: JobDraft): void {
  const { queued, inFlight } = draft.state;
  if (queued > 0 || inFlight > 0) return;
  const mayGrow = sitemapsAreAwaited(draft) || !backlogIsEmpty(draft);
  if (draft.pagesLeft <= 0 || !mayGrow) endJob(draft, "completed");
}

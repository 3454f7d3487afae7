/** Tells a worker that a job has ended, as soon as it has: what it was granted by then is not fetched any more. */
import { type CrawlNews, crawlJob } from "../../../../schemas/crawl/crawl-job.ts";
import { ActorError } from "../../../../schemas/errors.ts";
import type { ActorClient } from "../../../runtime/actor-client.ts";
import type { Clock } from "../../../runtime/clock.ts";
import type { LiveUpdate, LiveUpdates } from "../../../runtime/live.ts";

/** How often a worker asks whether a job still runs while nobody answers, after it may have missed the job's end. */
const JOB_WATCH_RETRY_MS = 500;

interface JobWatchParts {
  live: LiveUpdates;
  call: ActorClient["call"];
  clock: Clock;
}

/**
 * Resolves once it is known whether the job runs, with a signal that aborts when it does not any more, until `closed`
 * does. Rejects with ActorError `unavailable` where the bus or the job is away.
 */
export async function watchJob(
  { live, call, clock }: JobWatchParts,
  { account, job }: { account: string; job: string },
  closed: AbortSignal,
): Promise<AbortSignal> {
  const ended = new AbortController();
  const failed = new AbortController();
  const left = AbortSignal.any([closed, ended.signal, failed.signal]);
  const updates = await live.subscribe(crawlJob, job, left);
  try {
    await ask();
  } catch (error) {
    failed.abort();
    throw error;
  }
  void follow(updates);
  return ended.signal;

  async function follow(news: AsyncIterable<LiveUpdate<CrawlNews>>): Promise<void> {
    for await (const update of news) {
      if ("missed" in update) await askOn();
      else if (update.value.status !== "running") ended.abort();
    }
  }

  /** What was missed may be its end. */
  async function askOn(): Promise<void> {
    while (!closed.aborted && !ended.signal.aborted) {
      try {
        return await ask();
      } catch {
        // The job is away, as the bus was.
        await clock.wait(JOB_WATCH_RETRY_MS, closed);
      }
    }
  }

  async function ask(): Promise<void> {
    try {
      const { status } = await call(crawlJob, job, "get", { account }, { signal: closed });
      if (status !== "running") ended.abort();
    } catch (error) {
      if (!(error instanceof ActorError && error.code === "not_found")) throw error;
      ended.abort();
    }
  }
}

/** Notifies a worker of a job's end, so that granted requests are no longer made. */
import { type CrawlNews, crawlJob } from "../../../../schemas/crawl/crawl-job.ts";
import { ActorError } from "../../../../schemas/errors.ts";
import type { LiveUpdate, LiveUpdates } from "../../../runtime/bus/live.ts";
import type { ActorClient } from "../../../runtime/calls/actor-client.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";

/**
 * After live updates were missed, the worker asks for the job's status. If the job is unreachable, the worker asks
 * again at this interval.
 */
const JOB_WATCH_RETRY_MS = 500;

interface JobWatchParts {
  live: LiveUpdates;
  call: ActorClient["call"];
  clock: Clock;
}

/**
 * Reads the job's status once, then resolves with a signal that aborts when the job has ended. The watch lasts until
 * `closed` aborts. Rejects with ActorError `unavailable` if the bus or the job is unreachable.
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

  /** The missed message may be the job's end. */
  async function askOn(): Promise<void> {
    while (!closed.aborted && !ended.signal.aborted) {
      try {
        return await ask();
      } catch {
        // Updates are missed when the bus is unreachable, and the job may still be unreachable now.
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

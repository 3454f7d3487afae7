/** Fetches a sitemap and reports its addresses to the job while it arrives. */
import type { Envelope } from "../../../../schemas/contract.ts";
import { envelope } from "../../../../schemas/contract.ts";
import { crawlJob, type SitemapUrl } from "../../../../schemas/crawl/crawl-job.ts";
import type { TurnRequest } from "../../../../schemas/crawl/crawl-page.ts";
import {
  REPORT_BYTES_MAX,
  SITEMAP_BYTES_MAX,
  SITEMAP_REPORT_URLS_MAX,
} from "../../../../schemas/crawl/limits.ts";
import { EgressError } from "../../../egress/egress-error.ts";
import { EgressAgents, type EgressResponse, egressFetch } from "../../../egress/egress-fetch.ts";
import type { EgressGuard } from "../../../egress/egress-guard.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";
import { type Departure, start } from "../../lib/departure/departure.ts";
import { FetchDeadline } from "../../lib/load/fetch-deadline.ts";
import { isPassing, isPassingStatus } from "../../lib/load/passing-faults.ts";
import { redirectTarget } from "../../lib/load/redirect-target.ts";
import { awayMsOf } from "../../lib/load/retry-after.ts";
import { readSitemap, type SitemapSummary } from "../../lib/sitemap/sitemap.ts";
import type { SitemapEntry } from "../../lib/sitemap/sitemap-entry.ts";

/** Timeout of one sitemap: 50 MB at 3 Mbit/s. */
export const SITEMAP_FETCH_MS_MAX = 120_000;
/**
 * Timeout of a sitemap's response head, as for a page. Links wait for sitemaps, and a silent sitemap is requested
 * three times.
 */
export const SITEMAP_ANSWER_MS_MAX = 30_000;

export type SitemapRequest = Extract<TurnRequest, { type: "sitemap" }>;

export interface SitemapParts {
  guard: EgressGuard;
  clock: Clock;
  ca?: string | undefined;
  fetchMs?: number;
}

export interface SitemapTask {
  job: string;
  turn: string;
  request: SitemapRequest;
  headers: Record<string, string>;
  departure: Departure;
  send(envelope: Envelope): Promise<void>;
}

/** The end of the read, and the pause that the host asks for. */
interface End {
  failed?: string;
  retry: boolean;
  awayMs?: number | undefined;
}

/** Fetches a sitemap. Throws the signal's reason and errors of `send`; everything else is reported to the job. */
export async function fetchSitemap(
  parts: SitemapParts,
  task: SitemapTask,
): Promise<{ awayMs: number | undefined }> {
  const report = new SitemapReport(task);
  const { failed, retry, awayMs } = await read(parts, task, report);
  await report.end({ retry, ...(failed !== undefined && { failed }) });
  return { awayMs };
}

async function read(
  { guard, clock, ca, fetchMs = SITEMAP_FETCH_MS_MAX }: SitemapParts,
  { request, headers, departure }: SitemapTask,
  report: SitemapReport,
): Promise<End> {
  using agents = new EgressAgents({ guard, idleMax: 1, ...(ca !== undefined && { ca }) });
  const { signal, onStarted } = departure;
  const answerMs = Math.min(SITEMAP_ANSWER_MS_MAX, fetchMs);
  const deadline = new FetchDeadline(signal, answerMs, clock);
  let hasAnswered = false;
  try {
    const response = await egressFetch(request.url, {
      agents,
      signal: deadline.signal,
      headers,
      // The limit of the decompressed content ends the read. This limit of the compressed file is higher, because
      // such a file is hardly ever larger than its content.
      bytesMax: 2 * SITEMAP_BYTES_MAX,
      redirectsMax: 0,
      onSending: () => start(departure),
      onSent: onStarted,
    });
    hasAnswered = true;
    deadline.extend(fetchMs - answerMs);
    return await take(response);
  } catch (error) {
    signal.throwIfAborted();
    if (deadline.passed) return tooLate();
    if (error instanceof EgressError) return { failed: error.message, retry: isPassing(error) };
    throw error;
  } finally {
    deadline.clear();
  }

  /**
   * Returns the failure at the timeout. After a response head, no retry is made: it would not be faster, and the
   * job's links wait for the sitemap.
   */
  function tooLate(): End {
    if (!hasAnswered) return failed(`the server did not answer in ${answerMs} ms`, true);
    return failed(
      `it took longer than ${fetchMs} ms; its first ${report.entries} entries count`,
      false,
    );
  }

  async function take({ status, headers: answered, body, url }: EgressResponse): Promise<End> {
    const target = redirectTarget(request.url, status, answered);
    // A redirect counts as an index with one entry, which is fetched in a turn of its own.
    if (target?.url !== undefined) {
      await report.add([{ url: target.url }], "nested");
      return { retry: false };
    }
    if (target !== undefined) return failed(target.fault, false);
    const awayMs = awayMsOf(status, answered.get("retry-after"), clock.now());
    if (status !== 200) {
      return {
        ...failed(`the server answered with status ${status}`, isPassingStatus(status)),
        awayMs,
      };
    }
    const onEntries = (entries: SitemapEntry[], form: SitemapSummary["form"]) =>
      deadline.pauseFor(report.add(entries, form === "index" ? "nested" : "urls"));
    return endOf(await readSitemap(body, { url, onEntries }));
  }
}

function endOf({ end, form, entries, invalid }: SitemapSummary): End {
  switch (end) {
    case "complete":
      return invalid === 0
        ? { retry: false }
        : failed(`${invalid} of its entries have no address that could be fetched`, false);
    case "urls_max":
    case "bytes_max":
      return failed(
        `it is larger than a sitemap may be; its first ${entries} entries count`,
        false,
      );
    case "broken":
      return form === "unknown"
        ? failed("the file is not a sitemap", false)
        : failed(`it breaks off or is not well-formed; its first ${entries} entries count`, false);
    default:
      return end satisfies never;
  }
}

const failed = (what: string, retry: boolean): End => ({
  failed: `Cannot read the sitemap: ${what}`,
  retry,
});

/** Sends addresses in slices that fit a message. */
class SitemapReport {
  readonly #task: SitemapTask;
  #urls: SitemapUrl[] = [];
  #nested: SitemapUrl[] = [];
  #bytes = 0;
  #entries = 0;

  constructor(task: SitemapTask) {
    this.#task = task;
  }

  /** Number of entries so far. */
  get entries(): number {
    return this.#entries;
  }

  async add(entries: readonly SitemapUrl[], to: "urls" | "nested"): Promise<void> {
    for (const { url, lastModifiedAt, priority } of entries) {
      // The JSON around an address takes no more than this.
      const bytes = url.length + 100;
      const count = this.#urls.length + this.#nested.length;
      if (count >= SITEMAP_REPORT_URLS_MAX || this.#bytes + bytes > REPORT_BYTES_MAX) {
        await this.#send();
      }
      this.#bytes += bytes;
      this.#entries += 1;
      (to === "urls" ? this.#urls : this.#nested).push({
        url,
        ...(lastModifiedAt !== undefined && { lastModifiedAt }),
        ...(priority !== undefined && { priority }),
      });
    }
  }

  end(end: { failed?: string; retry: boolean }): Promise<void> {
    return this.#send(end);
  }

  async #send(end?: { failed?: string; retry: boolean }): Promise<void> {
    const { job, turn, request, send } = this.#task;
    const { url, nesting } = request;
    const slice = { turn, url, nesting, urls: this.#urls, nested: this.#nested };
    this.#urls = [];
    this.#nested = [];
    this.#bytes = 0;
    await send(envelope(crawlJob, job, "sitemapRead", { ...slice, ...(end && { end }) }));
  }
}

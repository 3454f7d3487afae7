/** The jobs that a worker keeps between turns: their requests, and their connections or browser contexts. */

import { CrawlRequest } from "../../../../schemas/crawl/http/crawl.ts";
import { CRAWL_REQUEST_BYTES_MAX } from "../../../../schemas/crawl/limits.ts";
import { crawlRequestBlob, decryptCrawlRequest } from "../../../../schemas/crawl/stored-request.ts";
import type { RequestKeys } from "../../../rendering/lib/request-keys/request-keys.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";
import type { BlobStore } from "../../../runtime/store/blob-store.ts";
import type { OpenPageLoader, PageLoader } from "../load/page-loader.ts";

/** Maximum number of jobs that a worker keeps, and how long it keeps a job after its last turn. Jobs in use stay. */
export const JOBS_KEPT_MAX = 64;
export const JOB_KEPT_MS = 30_000;
/** Maximum bytes of the kept jobs' requests: a dozen of the largest. Past it unused jobs are evicted. */
export const JOBS_KEPT_BYTES_MAX = 12 * CRAWL_REQUEST_BYTES_MAX;

export interface HeldJobsParts {
  blobs: Pick<BlobStore, "get">;
  requestKeys: Pick<RequestKeys, "open">;
  clock: Clock;
  open: OpenPageLoader;
  /**
   * Returns a signal that aborts when the job has ended. If `watch` is missing, the worker does not learn of the end
   * of a job.
   */
  watch?: (job: JobName, closed: AbortSignal) => Promise<AbortSignal>;
  jobsMax?: number;
  keptMs?: number;
}

export interface JobName {
  account: string;
  job: string;
}

/** A job on this worker. The holder must call `release`. */
export interface HeldJob {
  request: CrawlRequest;
  /** Opens the loader on first use: a waiting turn needs none. */
  loader(): Promise<PageLoader>;
  /** Resolves with a signal that aborts when the job has ended. No request may start after it. */
  ended(): Promise<AbortSignal>;
  release(): void;
}

interface Kept extends JobName {
  request: Promise<CrawlRequest>;
  loader: Promise<PageLoader> | undefined;
  ended: Promise<AbortSignal> | undefined;
  /** Aborts when the job is evicted. */
  dropped: AbortController;
  holders: number;
  usedAt: number;
  /** Bytes of the request, once it is read. */
  bytes: number;
}

export class HeldJobs {
  readonly #parts: HeldJobsParts;
  /** Jobs by name, the least recently used first. */
  readonly #kept = new Map<string, Kept>();
  readonly #closed = new AbortController();
  #sweeping = false;

  constructor(parts: HeldJobsParts) {
    this.#parts = parts;
  }

  /**
   * Holds a job. Rejects with ActorError `not_found` if the job's request is gone, and with RequestKeyNotOpened if no
   * host of actors opens its key.
   */
  async hold({ account, job }: JobName): Promise<HeldJob> {
    const kept = this.#kept.get(job) ?? this.#read(account, job);
    this.#kept.delete(job);
    this.#kept.set(job, kept);
    kept.holders += 1;
    const release = () => {
      kept.holders -= 1;
      kept.usedAt = this.#parts.clock.monotonic();
      this.#sweep(this.#parts.jobsMax ?? JOBS_KEPT_MAX);
      if (!this.#sweeping) void this.#sweepLater();
    };
    try {
      const request = await kept.request;
      const ended = () => this.#ended(kept, account);
      return { request, release, ended, loader: () => this.#loader(kept, request) };
    } catch (error) {
      if (this.#kept.get(job) === kept) {
        this.#kept.delete(job);
        kept.dropped.abort();
      }
      release();
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#closed.abort();
    const all = [...this.#kept.values()];
    this.#kept.clear();
    await Promise.all(all.map(drop));
  }

  #read(account: string, job: string): Kept {
    const kept: Kept = {
      account,
      job,
      request: this.#request({ account, job }, (bytes) => {
        kept.bytes = bytes;
      }),
      loader: undefined,
      ended: undefined,
      dropped: new AbortController(),
      holders: 0,
      usedAt: this.#parts.clock.monotonic(),
      bytes: 0,
    };
    return kept;
  }

  async #request(
    { account, job }: JobName,
    onRead: (bytes: number) => void,
  ): Promise<CrawlRequest> {
    const { blobs, requestKeys } = this.#parts;
    const stored = Buffer.concat(await Array.fromAsync(blobs.get(crawlRequestBlob(job))));
    onRead(stored.length);
    const request = await decryptCrawlRequest(stored, (sealed) =>
      requestKeys.open({ account, job, sealed }),
    );
    return CrawlRequest.parse(JSON.parse(Buffer.from(request).toString()));
  }

  #loader(kept: Kept, request: CrawlRequest): Promise<PageLoader> {
    kept.loader ??= this.#parts.open({ account: kept.account, job: kept.job }, request);
    const loader = kept.loader;
    loader.catch(() => {
      // The next page retries.
      if (kept.loader === loader) kept.loader = undefined;
    });
    return loader;
  }

  #ended(kept: Kept, account: string): Promise<AbortSignal> {
    const { watch } = this.#parts;
    if (watch === undefined) return Promise.resolve(kept.dropped.signal);
    kept.ended ??= watch({ account, job: kept.job }, kept.dropped.signal);
    const ended = kept.ended;
    ended.catch(() => {
      // The next turn retries.
      if (kept.ended === ended) kept.ended = undefined;
    });
    return ended;
  }

  /**
   * Evicts unused jobs: those that are kept long enough, and the least recently used ones past the limits of jobs and
   * bytes.
   */
  #sweep(jobsMax: number): void {
    const { clock, keptMs = JOB_KEPT_MS } = this.#parts;
    const now = clock.monotonic();
    let bytes = this.#kept.values().reduce((sum, kept) => sum + kept.bytes, 0);
    for (const kept of this.#kept.values()) {
      if (kept.holders > 0) continue;
      const isFull = this.#kept.size > jobsMax || bytes > JOBS_KEPT_BYTES_MAX;
      if (!isFull && now - kept.usedAt < keptMs) continue;
      bytes -= kept.bytes;
      this.#kept.delete(kept.job);
      void drop(kept);
    }
  }

  async #sweepLater(): Promise<void> {
    const { clock, jobsMax = JOBS_KEPT_MAX, keptMs = JOB_KEPT_MS } = this.#parts;
    this.#sweeping = true;
    while (this.#kept.size > 0 && !this.#closed.signal.aborted) {
      await clock.wait(keptMs, this.#closed.signal);
      this.#sweep(jobsMax);
    }
    this.#sweeping = false;
  }
}

/** Closes a job's loader. Never rejects: a loader that fails to open or close holds nothing. */
async function drop({ loader, dropped }: Kept): Promise<void> {
  dropped.abort();
  try {
    await (await loader)?.close();
  } catch {
    // The comment above says why.
  }
}

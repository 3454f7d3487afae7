/** What a worker keeps of jobs between their turns: their requests, and connections or a browser context. */
import { JOB_KEPT_MS, JOBS_KEPT_MAX } from "../../schemas/crawl-limits.ts";
import { CrawlRequest } from "../../schemas/http/crawl.ts";
import type { BlobStore } from "../runtime/blob-store.ts";
import type { Clock } from "../runtime/clock.ts";
import type { OpenPageLoader, PageLoader } from "./page-loader.ts";

export interface JobShelfParts {
  blobs: Pick<BlobStore, "get">;
  clock: Clock;
  open: OpenPageLoader;
  jobsMax?: number;
  keptMs?: number;
}

/** A job on this worker. Whoever takes it gives it back by `release`. */
export interface HeldJob {
  request: CrawlRequest;
  /** Opened when it is first asked for: a turn that waits needs none. */
  loader(): Promise<PageLoader>;
  release(): void;
}

interface Kept {
  account: string;
  job: string;
  request: Promise<CrawlRequest>;
  loader: Promise<PageLoader> | undefined;
  holders: number;
  usedAt: number;
}

export class JobShelf {
  readonly #parts: JobShelfParts;
  /** By job, the longest unused first. */
  readonly #kept = new Map<string, Kept>();
  readonly #closed = new AbortController();
  #sweeping = false;

  constructor(parts: JobShelfParts) {
    this.#parts = parts;
  }

  /** Rejects with ActorError `not_found` where the job has no request any more. */
  async hold({ account, job }: { account: string; job: string }): Promise<HeldJob> {
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
      return { request, release, loader: () => this.#loader(kept, request) };
    } catch (error) {
      if (this.#kept.get(job) === kept) this.#kept.delete(job);
      release();
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#closed.abort();
    const all = [...this.#kept.values()];
    this.#kept.clear();
    await Promise.all(all.map(closeLoader));
  }

  #read(account: string, job: string): Kept {
    const usedAt = this.#parts.clock.monotonic();
    return { account, job, request: this.#request(job), loader: undefined, holders: 0, usedAt };
  }

  async #request(job: string): Promise<CrawlRequest> {
    const chunks: Uint8Array[] = [];
    for await (const chunk of this.#parts.blobs.get(`crawl.${job}.request`)) chunks.push(chunk);
    return CrawlRequest.parse(JSON.parse(Buffer.concat(chunks).toString()));
  }

  #loader(kept: Kept, request: CrawlRequest): Promise<PageLoader> {
    kept.loader ??= this.#parts.open({ account: kept.account, job: kept.job }, request);
    const loader = kept.loader;
    loader.catch(() => {
      // The next page tries again.
      if (kept.loader === loader) kept.loader = undefined;
    });
    return loader;
  }

  /** Lets go of unused jobs: those past their time, and the longest unused of too many. */
  #sweep(jobsMax: number): void {
    const { clock, keptMs = JOB_KEPT_MS } = this.#parts;
    const now = clock.monotonic();
    for (const kept of this.#kept.values()) {
      if (kept.holders > 0) continue;
      if (this.#kept.size <= jobsMax && now - kept.usedAt < keptMs) continue;
      this.#kept.delete(kept.job);
      void closeLoader(kept);
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

/** Never rejects: a loader that did not open, or does not close, holds nothing that could be given back. */
async function closeLoader({ loader }: Kept): Promise<void> {
  try {
    await (await loader)?.close();
  } catch {
    // Said above.
  }
}

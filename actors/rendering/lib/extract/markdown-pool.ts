/**
 * Converts pages to Markdown on separate threads, so that no page can block the process, fill its memory or run
 * without end.
 */
import { Worker } from "node:worker_threads";
import { MARKDOWN_QUEUE_MAX } from "../../../../schemas/crawl/limits.ts";
import { ActorError } from "../../../../schemas/errors.ts";
import { moduleBeside } from "../../../../schemas/module-beside.ts";
import { type Clock, systemClock } from "../../../runtime/lib/clock.ts";
import { Timeout } from "../../../runtime/lib/time-limit.ts";
import type { MarkdownPage } from "./markdown.ts";
import type { MarkdownOutcome } from "./markdown-thread.ts";

/** Timeout of one page. 2 MB of real HTML take 1 s on a busy core. */
export const MARKDOWN_TIMEOUT_MS = 15_000;
/** Memory limit of one thread. A page of 10 MB of links needs about 500 MiB. */
const MARKDOWN_HEAP_MIB_MAX = 640;

export interface MarkdownPoolOptions {
  threads?: number;
  timeoutMs?: number;
  queueMax?: number;
  heapMibMax?: number;
  clock?: Clock;
}

interface Job {
  page: MarkdownPage;
  signal: AbortSignal | undefined;
  settle(outcome: MarkdownOutcome | Error): void;
}

/**
 * A pool of threads. They start on demand and are reused. A thread is replaced after a page that exceeded its time or
 * memory.
 */
export class MarkdownPool {
  readonly #threads: number;
  readonly #timeoutMs: number;
  readonly #queueMax: number;
  readonly #heapMibMax: number;
  readonly #clock: Clock;
  readonly #idle: Worker[] = [];
  readonly #busy = new Set<Worker>();
  readonly #queue: Job[] = [];
  #closed = false;

  constructor(options: MarkdownPoolOptions = {}) {
    this.#threads = options.threads ?? 1;
    this.#timeoutMs = options.timeoutMs ?? MARKDOWN_TIMEOUT_MS;
    this.#queueMax = options.queueMax ?? MARKDOWN_QUEUE_MAX;
    this.#heapMibMax = options.heapMibMax ?? MARKDOWN_HEAP_MIB_MAX;
    this.#clock = options.clock ?? systemClock;
  }

  /**
   * Converts a page. Throws `busy` if the queue is full or the pool is closed. If the signal is aborted, throws its
   * reason.
   */
  async convert(page: MarkdownPage, signal?: AbortSignal): Promise<MarkdownOutcome> {
    signal?.throwIfAborted();
    if (this.#closed) throw new ActorError("busy", "Cannot make Markdown: the pool is closed");
    if (this.#queue.length >= this.#queueMax) {
      throw new ActorError("busy", `Cannot make Markdown: ${this.#queueMax} pages wait already`);
    }
    const { promise, resolve, reject } = Promise.withResolvers<MarkdownOutcome>();
    const settle = (outcome: MarkdownOutcome | Error) =>
      outcome instanceof Error ? reject(outcome) : resolve(outcome);
    const job: Job = { page, signal, settle };
    const leave = () => this.#leave(job);
    signal?.addEventListener("abort", leave, { once: true });
    this.#queue.push(job);
    this.#next();
    try {
      return await promise;
    } finally {
      signal?.removeEventListener("abort", leave);
    }
  }

  /** Terminates the threads. Running and waiting pages are rejected with `busy`. */
  async close(): Promise<void> {
    this.#closed = true;
    const refusal = new ActorError("busy", "Cannot make Markdown: the pool is closed");
    for (const job of this.#queue.splice(0)) job.settle(refusal);
    await Promise.all([...this.#idle.splice(0), ...this.#busy].map((worker) => worker.terminate()));
  }

  #next(): void {
    if (this.#queue.length === 0 || this.#closed) return;
    if (this.#idle.length === 0 && this.#busy.size >= this.#threads) return;
    const job = this.#queue.shift();
    if (job !== undefined) void this.#run(job);
  }

  /** Runs a job on a thread. Never rejects: however the thread ends, the job is settled. */
  async #run(job: Job): Promise<void> {
    const worker = this.#idle.pop() ?? startThread(this.#heapMibMax);
    this.#busy.add(worker);
    worker.ref();
    const outcome = await this.#outcome(worker, job);
    this.#busy.delete(worker);
    if (outcome.again && !this.#closed) {
      worker.unref();
      this.#idle.push(worker);
    } else {
      void worker.terminate();
    }
    job.settle(outcome.result);
    this.#next();
  }

  #outcome(worker: Worker, { page, signal }: Job): Promise<ThreadOutcome> {
    const { promise, resolve } = Promise.withResolvers<ThreadOutcome>();
    const lost = (reason: string) =>
      resolve({
        again: false,
        result: { kind: "failed", reason: `Cannot make Markdown: ${reason}` },
      });
    const ms = this.#timeoutMs;
    const error = () => new Error(`it took longer than ${ms} ms`);
    const timeout = new Timeout({ ms, error, clock: this.#clock });
    timeout.signal.addEventListener("abort", () => lost(timeout.signal.reason.message));
    const onMessage = (result: MarkdownOutcome) => resolve({ again: true, result });
    const onError = (error: Error) => lost(error.message);
    const onExit = () => lost("the thread was ended");
    const onAbort = () => resolve({ again: false, result: reasonOf(signal) });
    worker.once("message", onMessage).once("error", onError).once("exit", onExit);
    signal?.addEventListener("abort", onAbort, { once: true });
    worker.postMessage(page);
    return promise.finally(() => {
      timeout[Symbol.dispose]();
      worker.off("message", onMessage).off("error", onError).off("exit", onExit);
      signal?.removeEventListener("abort", onAbort);
    });
  }

  /** Removes a waiting job from the queue. A running job is ended by terminating its thread. */
  #leave(job: Job): void {
    const index = this.#queue.indexOf(job);
    if (index < 0) return;
    this.#queue.splice(index, 1);
    job.settle(reasonOf(job.signal));
  }
}

interface ThreadOutcome {
  /** The thread is reusable. */
  again: boolean;
  result: MarkdownOutcome | Error;
}

function reasonOf(signal: AbortSignal | undefined): Error {
  const reason: unknown = signal?.reason;
  return reason instanceof Error ? reason : new Error("Cannot make Markdown: the caller left");
}

function startThread(heapMibMax: number): Worker {
  const worker = new Worker(moduleBeside(import.meta.url, "./markdown-thread"), {
    resourceLimits: { maxOldGenerationSizeMb: heapMibMax },
    // The thread needs no environment of this process.
    env: {},
    execArgv: [],
  });
  // Errors are ignored, because a terminated thread may still emit one.
  worker.on("error", () => {});
  return worker;
}

/** Converts untrusted pages to Markdown on separate threads. */
import { MARKDOWN_QUEUE_MAX } from "../../../../schemas/crawl/limits.ts";
import { ActorError } from "../../../../schemas/errors.ts";
import { moduleBeside } from "../../../../schemas/module-beside.ts";
import { type Clock, systemClock } from "../../../runtime/lib/clock.ts";
import { type ThreadCaller, ThreadPool } from "../threads/thread-pool.ts";
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

export class MarkdownPool {
  readonly #queueMax: number;
  readonly #threads: ThreadPool<MarkdownPage, MarkdownOutcome>;

  constructor({
    threads = 1,
    timeoutMs = MARKDOWN_TIMEOUT_MS,
    queueMax = MARKDOWN_QUEUE_MAX,
    heapMibMax = MARKDOWN_HEAP_MIB_MAX,
    clock = systemClock,
  }: MarkdownPoolOptions = {}) {
    this.#queueMax = queueMax;
    this.#threads = new ThreadPool({
      module: moduleBeside(import.meta.url, "./markdown-thread"),
      ...{ threads, timeoutMs, heapMibMax, clock },
      work: "it",
      closedError: () => new ActorError("busy", "Cannot make Markdown: the pool is closed"),
    });
  }

  /**
   * Converts a page. Throws `busy` if the queue is full or the pool is closed, and the signal's reason as soon as the
   * signal aborts.
   */
  async convert(page: MarkdownPage, caller: ThreadCaller): Promise<MarkdownOutcome> {
    caller.signal.throwIfAborted();
    if (this.#threads.waiting >= this.#queueMax) {
      throw new ActorError("busy", `Cannot make Markdown: ${this.#queueMax} pages wait already`);
    }
    const result = await this.#threads.run(page, caller);
    if (result.kind === "done") return result.output;
    return { kind: "failed", reason: `Cannot make Markdown: ${result.reason}` };
  }

  /** Terminates the threads. Running pages fail, and waiting ones are rejected with `busy`. */
  async close(): Promise<void> {
    await this.#threads.close();
  }
}

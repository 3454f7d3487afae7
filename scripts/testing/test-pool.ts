/** Runs test files in several processes at a time, each process one file after another. */
import { chmod, mkdir, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { REPOSITORY } from "../tools.ts";
import { IdleProcessors } from "./idle-processors.ts";
import type { RunReport } from "./run-report.ts";
import { suiteOf } from "./test-selection.ts";
import { TestWorker } from "./test-worker.ts";

export interface TestPoolOptions {
  /** Begins the marks of all processes. */
  mark: string;
  /** Holds all temporary files of the run. */
  folder: string;
  grep?: string;
  /** How long a file may keep something open after its last test. */
  closeMs: number;
}

/** How many files run at a time. */
export interface Concurrency {
  /** The number of files that always run at a time. */
  workers: number;
  /** The number of further files that run while the processors have idle time. */
  more: number;
}

export class TestPool {
  readonly #options: TestPoolOptions;
  #workers = 0;
  #files = 0;

  constructor(options: TestPoolOptions) {
    this.#options = options;
  }

  /** Runs the files in this order. Resolves when all have ended and their processes are gone. */
  async run(
    files: readonly string[],
    { workers, more }: Concurrency,
    report: RunReport,
  ): Promise<void> {
    const queue = [...files];
    const processors = new IdleProcessors();
    const next = async () => queue.shift();
    const nextWhenIdle = async () => {
      await processors.turn(() => queue.length === 0);
      return queue.shift();
    };
    await Promise.all([
      ...Array.from({ length: workers }, () => this.#work(next, queue, report)),
      ...Array.from({ length: more }, () => this.#work(nextWhenIdle, queue, report)),
    ]);
  }

  async #work(
    next: () => Promise<string | undefined>,
    queue: readonly string[],
    report: RunReport,
  ): Promise<void> {
    let file = await next();
    if (file === undefined) return;
    let worker = this.#newWorker();
    for (; file !== undefined; file = await next()) {
      await this.#runFile(worker, file, report);
      // Fault tests measure and kill, so each has a process that nothing else has used.
      const isUsed = !worker.isFit || suiteOf(file) === "faults";
      if (!isUsed || queue.length === 0) continue;
      await worker[Symbol.asyncDispose]();
      worker = this.#newWorker();
    }
    await worker[Symbol.asyncDispose]();
  }

  async #runFile(worker: TestWorker, file: string, report: RunReport): Promise<void> {
    const { folder: all, grep, closeMs } = this.#options;
    const number = ++this.#files;
    const folder = join(all, String(number));
    await mkdir(folder);
    await chmod(folder, 0o711);
    const entry = report.open(file);
    const order = {
      path: resolve(REPOSITORY, file),
      folder,
      mark: `${worker.mark}${number}/`,
      closeMs,
    };
    const outcome = await worker.run({ ...order, ...(grep !== undefined && { grep }) }, (text) =>
      entry.write(text),
    );
    // Processes that were just killed may have written there until then.
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
    entry.end(outcome);
  }

  #newWorker(): TestWorker {
    return new TestWorker(`${this.#options.mark}${++this.#workers}/`);
  }
}

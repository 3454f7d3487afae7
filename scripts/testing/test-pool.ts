/** Runs test files in several worker processes at a time. Each worker process runs one file after another. */
import { chmod, mkdir, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { REPOSITORY } from "../tools.ts";
import { IdleProcessors } from "./idle-processors.ts";
import type { RunReport } from "./run-report.ts";
import { suiteOf } from "./test-selection.ts";
import { TestWorker } from "./test-worker.ts";

export interface TestPoolOptions {
  /** The beginning of the marks of all processes of the run. */
  mark: string;
  /** Holds all temporary files of the run. */
  folder: string;
  grep?: string;
  /** How long a file may keep resources open after its last test, in ms. */
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

  /** Starts the files in this order. Resolves when all files have ended and their processes have exited. */
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
      // Fault tests measure times and kill processes, so each file with fault tests gets a new worker process.
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
    // Retries, because processes that were just killed may have written to the folder until now.
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
    entry.end(outcome);
  }

  #newWorker(): TestWorker {
    return new TestWorker(`${this.#options.mark}${++this.#workers}/`);
  }
}

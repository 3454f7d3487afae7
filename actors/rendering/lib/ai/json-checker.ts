/**
 * Validates answers of AI models against JSON Schemas on a separate thread. Answers and schemas are untrusted, and a
 * validation may never end.
 */
import { Worker } from "node:worker_threads";
import { moduleBeside } from "../../../../schemas/module-beside.ts";
import { type Clock, systemClock } from "../../../runtime/lib/clock.ts";
import { Timeout } from "../../../runtime/lib/time-limit.ts";
import type { JsonCheck, JsonVerdict } from "./json-checker-thread.ts";

/** Maximum time and memory of one validation. A usual answer takes 1 ms. */
export const JSON_CHECK_MS = 5_000;
export const JSON_CHECK_HEAP_MIB_MAX = 128;

export class JsonChecker {
  readonly #timeoutMs: number;
  readonly #clock: Clock;
  #worker: Worker | undefined;
  /** The latest check. Checks run one at a time, so a new check waits for this one. */
  #last: Promise<unknown> = Promise.resolve();
  #closed = false;

  constructor({
    timeoutMs = JSON_CHECK_MS,
    clock = systemClock,
  }: { timeoutMs?: number; clock?: Clock } = {}) {
    this.#timeoutMs = timeoutMs;
    this.#clock = clock;
  }

  /** Validates an answer. Throws if the checker is closed. */
  async check(check: JsonCheck): Promise<JsonVerdict> {
    const verdict = this.#last.then(() => this.#run(check));
    this.#last = verdict.catch(() => {});
    return await verdict;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#worker?.terminate();
    await this.#last;
  }

  async #run(check: JsonCheck): Promise<JsonVerdict> {
    if (this.#closed) throw new Error("Cannot check an answer: the checker is closed");
    this.#worker ??= startThread();
    const worker = this.#worker;
    const { promise, resolve } = Promise.withResolvers<JsonVerdict>();
    const lost = (reason: string) => {
      if (this.#worker === worker) this.#worker = undefined;
      void worker.terminate();
      resolve({ kind: "bad_schema", reason });
    };
    const onError = (error: Error) => lost(error.message);
    const onExit = () => lost("the thread that checks it was ended");
    const ms = this.#timeoutMs;
    const error = () => new Error(`checking an answer against it took longer than ${ms} ms`);
    using timeout = new Timeout({ ms, error, clock: this.#clock });
    timeout.signal.addEventListener("abort", () => lost(timeout.signal.reason.message));
    worker.once("message", resolve).once("error", onError).once("exit", onExit);
    worker.ref();
    worker.postMessage(check);
    const verdict = await promise;
    worker.off("message", resolve).off("error", onError).off("exit", onExit);
    worker.unref();
    return verdict;
  }
}

function startThread(): Worker {
  const worker = new Worker(moduleBeside(import.meta.url, "./json-checker-thread"), {
    resourceLimits: { maxOldGenerationSizeMb: JSON_CHECK_HEAP_MIB_MAX },
    // The thread needs no environment of this process.
    env: {},
    execArgv: [],
  });
  // Errors are ignored, because a terminated thread may still emit one.
  worker.on("error", () => {});
  return worker;
}

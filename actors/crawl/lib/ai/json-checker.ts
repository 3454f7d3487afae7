/**
 * Holds answers of AI models to JSON Schemas, on a thread of its own: the schema is a stranger's, the answer a
 * machine's, and together they can take for ever.
 */
import { Worker } from "node:worker_threads";
import { type Clock, systemClock } from "../../../runtime/clock.ts";
import { Timeout } from "../../../runtime/time-limit.ts";
import type { JsonCheck, JsonVerdict } from "./json-checker-thread.ts";

/** Time and memory for holding an answer to its schema: both are written by strangers, and honest ones take 1 ms. */
export const JSON_CHECK_MS = 5_000;
export const JSON_CHECK_HEAP_MIB_MAX = 128;

export class JsonChecker {
  readonly #timeoutMs: number;
  readonly #clock: Clock;
  #worker: Worker | undefined;
  /** The end of the check that came last; one runs at a time, and each caller has one. */
  #last: Promise<unknown> = Promise.resolve();
  #closed = false;

  constructor({
    timeoutMs = JSON_CHECK_MS,
    clock = systemClock,
  }: { timeoutMs?: number; clock?: Clock } = {}) {
    this.#timeoutMs = timeoutMs;
    this.#clock = clock;
  }

  /** Throws when it is closed. */
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
  const worker = new Worker(new URL("./json-checker-thread.ts", import.meta.url), {
    resourceLimits: { maxOldGenerationSizeMb: JSON_CHECK_HEAP_MIB_MAX },
    // It needs none of what this process was given.
    env: {},
    execArgv: [],
  });
  // One that is ended may still say why.
  worker.on("error", () => {});
  return worker;
}

/**
 * Validates answers of AI models against JSON Schemas on a separate thread. Answers and schemas are untrusted, and a
 * validation may never end.
 */
import { moduleBeside } from "../../../../schemas/module-beside.ts";
import { type Clock, systemClock } from "../../../runtime/lib/clock.ts";
import { type ThreadCaller, ThreadPool } from "../threads/thread-pool.ts";
import type { JsonCheck, JsonVerdict } from "./json-checker-thread.ts";

/** Maximum time and memory of one validation. A usual answer takes 1 ms. */
export const JSON_CHECK_MS = 5_000;
export const JSON_CHECK_HEAP_MIB_MAX = 128;

export class JsonChecker {
  /**
   * One thread for all accounts. They take turns, so the hostile schemas of one account delay the check of another
   * only once. Each task waits for one check, so the worker's limits of tasks bound how many checks wait.
   */
  readonly #thread: ThreadPool<JsonCheck, JsonVerdict>;

  constructor({
    timeoutMs = JSON_CHECK_MS,
    clock = systemClock,
  }: { timeoutMs?: number; clock?: Clock } = {}) {
    this.#thread = new ThreadPool({
      module: moduleBeside(import.meta.url, "./json-checker-thread"),
      threads: 1,
      ...{ timeoutMs, heapMibMax: JSON_CHECK_HEAP_MIB_MAX, clock },
      work: "checking an answer against it",
      closedError: () => new Error("Cannot check an answer: the checker is closed"),
    });
  }

  /** Validates an answer. Throws if the checker is closed, and the signal's reason as soon as the signal aborts. */
  async check(check: JsonCheck, caller: ThreadCaller): Promise<JsonVerdict> {
    const result = await this.#thread.run(check, caller);
    return result.kind === "done" ? result.output : { kind: "bad_schema", reason: result.reason };
  }

  async close(): Promise<void> {
    await this.#thread.close();
  }
}

/**
 * Runs untrusted work of accounts on separate threads, so that no piece of it can block the process, fill its memory
 * or run without end. Accounts take turns.
 */
import { Worker } from "node:worker_threads";
import type { Clock } from "../../../runtime/lib/clock.ts";
import { Timeout } from "../../../runtime/lib/time-limit.ts";
import { TurnQueue } from "../../../runtime/lib/turn-queue.ts";

export interface ThreadPoolOptions {
  /** The module of the threads. It replies to each message with one message. */
  module: URL;
  threads: number;
  /** Limits of one piece of work. */
  timeoutMs: number;
  heapMibMax: number;
  clock: Clock;
  /** The work as the subject of a sentence, such as `it`. */
  work: string;
  /** The error of work that waits when the pool closes, and of later work. */
  closedError: () => Error;
}

export interface ThreadCaller {
  /** The account that the work is for. */
  account: string;
  /** Aborts when nobody needs the result anymore. */
  signal: AbortSignal;
}

/** `lost`: the work exceeded its time or memory, or the pool was closed. */
export type ThreadResult<Output> =
  | { kind: "done"; output: Output }
  | { kind: "lost"; reason: string };

interface Job<Input, Output> {
  input: Input;
  signal: AbortSignal;
  resolve(result: ThreadResult<Output>): void;
  reject(error: unknown): void;
}

/** Threads start on demand and are reused. A thread is replaced after work that was lost or aborted. */
export class ThreadPool<Input, Output> {
  readonly #options: ThreadPoolOptions;
  readonly #idle: Worker[] = [];
  readonly #busy = new Set<Worker>();
  readonly #queue = new TurnQueue<string, Job<Input, Output>>();
  #closed = false;

  constructor(options: ThreadPoolOptions) {
    this.#options = options;
  }

  /** How many pieces of work wait for a thread. */
  get waiting(): number {
    return this.#queue.size;
  }

  /** Sends the work to a thread. Rejects with the signal's reason as soon as the signal aborts. */
  async run(input: Input, { account, signal }: ThreadCaller): Promise<ThreadResult<Output>> {
    signal.throwIfAborted();
    if (this.#closed) throw this.#options.closedError();
    const { promise, resolve, reject } = Promise.withResolvers<ThreadResult<Output>>();
    const job = { input, signal, resolve, reject };
    // This removes work that waits. A running thread is ended in `#outcome`.
    const leave = () => {
      if (this.#queue.remove(account, job)) reject(signal.reason);
    };
    signal.addEventListener("abort", leave, { once: true });
    this.#queue.push(account, job);
    this.#startNext();
    try {
      return await promise;
    } finally {
      signal.removeEventListener("abort", leave);
    }
  }

  /** Terminates the threads. Running work is lost, and waiting work is rejected. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const job of this.#queue.clear()) job.reject(this.#options.closedError());
    await Promise.all([...this.#idle.splice(0), ...this.#busy].map((worker) => worker.terminate()));
  }

  #startNext(): void {
    if (this.#closed) return;
    if (this.#idle.length === 0 && this.#busy.size >= this.#options.threads) return;
    const job = this.#queue.shift();
    if (job !== undefined) void this.#run(job);
  }

  /** Runs a job on a thread. Never rejects: however the thread ends, the job is settled. */
  async #run(job: Job<Input, Output>): Promise<void> {
    const worker = this.#idle.pop() ?? startThread(this.#options);
    this.#busy.add(worker);
    worker.ref();
    const outcome = await this.#outcome(worker, job);
    this.#busy.delete(worker);
    if (outcome.kind === "done" && !this.#closed) {
      worker.unref();
      this.#idle.push(worker);
    } else {
      void worker.terminate();
    }
    if (outcome.kind === "aborted") job.reject(job.signal.reason);
    else job.resolve(outcome);
    this.#startNext();
  }

  async #outcome(worker: Worker, { input, signal }: Job<Input, Output>): Promise<Outcome<Output>> {
    const { timeoutMs: ms, clock, work } = this.#options;
    const { promise, resolve } = Promise.withResolvers<Outcome<Output>>();
    const lost = (error: Error) => resolve({ kind: "lost", reason: error.message });
    const error = () => new Error(`${work} took longer than ${ms} ms`);
    using timeout = new Timeout({ ms, error, clock });
    timeout.signal.addEventListener("abort", () => lost(timeout.signal.reason));
    const onMessage = (output: Output) => resolve({ kind: "done", output });
    const onExit = () => lost(new Error("the thread was ended"));
    const onAbort = () => resolve({ kind: "aborted" });
    worker.once("message", onMessage).once("error", lost).once("exit", onExit);
    signal.addEventListener("abort", onAbort, { once: true });
    worker.postMessage(input);
    const outcome = await promise;
    worker.off("message", onMessage).off("error", lost).off("exit", onExit);
    signal.removeEventListener("abort", onAbort);
    return outcome;
  }
}

type Outcome<Output> = ThreadResult<Output> | { kind: "aborted" };

function startThread({ module, heapMibMax }: ThreadPoolOptions): Worker {
  const worker = new Worker(module, {
    resourceLimits: { maxOldGenerationSizeMb: heapMibMax },
    // The thread needs no environment of this process.
    env: {},
    execArgv: [],
  });
  // Errors are ignored, because a terminated thread may still emit one.
  worker.on("error", () => {});
  return worker;
}

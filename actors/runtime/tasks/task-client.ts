/**
 * Queues one task and waits for its result. The worker reports to an inbox of this process, which also keeps the
 * input for the worker.
 */
import { randomBytes } from "node:crypto";
import { ActorError } from "../../../schemas/errors.ts";
import { CHUNK_BYTES, TASK_RUN_MS_MAX, WORKER_ABSENT_MS } from "../../../schemas/limits.ts";
import { laneOf } from "../../../schemas/split-streams.ts";
import { cancelSubject } from "../../../schemas/subjects.ts";
import { WriteRefused } from "../bus/atomic-batch.ts";
import type { Bus, BusRequest, BusSubscription } from "../bus/bus.ts";
import { persist } from "../bus/persist.ts";
import { decodeRefusal } from "../bus/refusal.ts";
import { type Clock, OVER } from "../lib/clock.ts";
import { currentTrace } from "../lib/trace.ts";
import { queueTask, type TaskQueue } from "./queue-task.ts";
import type { QueueTimes } from "./queue-times.ts";
import type { WorkerPresence } from "./worker-presence.ts";

/** A finished task. Reading all bytes, or leaving the loop, frees its inbox. */
export interface TaskRun<R> {
  reply: R;
  /** Milliseconds from the caller's request to the start of the task. */
  queuedMs: number;
  chunks: AsyncIterable<Uint8Array>;
}

/** The assumed wait in a queue from which no task has started yet. */
const QUEUE_UNKNOWN_MS = 5_000;

interface TaskToRun extends TaskQueue {
  key: string;
  message: string;
  input: unknown;
  from: string;
  queueTimes: QueueTimes;
  workers: WorkerPresence;
}

export async function runTask<R>(
  bus: Bus,
  clock: Clock,
  task: TaskToRun,
  { deadlineMs, signal }: { deadlineMs: number; signal: AbortSignal },
): Promise<TaskRun<R>> {
  const waitMs = Math.min(deadlineMs, TASK_RUN_MS_MAX);
  const run = new WaitingRun<R>(bus, clock, randomBytes(12).toString("hex"), task);
  const leave = () => run.fail(new ActorError("cancelled", "Cannot wait: the caller has left"));
  signal.addEventListener("abort", leave, { once: true });
  run.onEnd(() => signal.removeEventListener("abort", leave));
  if (signal.aborted) leave();
  else {
    void clock.wait(waitMs, run.ended).then(() => run.fail(run.lateness()));
    if (task.inTurns) void run.failIfAbsent();
    await run.queue(waitMs);
  }
  return run.done;
}

/** One run as its caller sees it, from the queued task to the last byte. */
class WaitingRun<R> {
  readonly #bus: Bus;
  readonly #clock: Clock;
  readonly #task: TaskToRun;
  readonly #id: string;
  readonly #inbox: string;
  readonly #queuedAt: number;
  #queuedMs = 0;
  readonly #input: Buffer;
  readonly #subscription: BusSubscription;
  readonly #done = Promise.withResolvers<TaskRun<R>>();
  readonly #end = new AbortController();
  /** Aborts when a worker has started the task, or when the run has ended. */
  readonly #queued = new AbortController();
  #sequence: number | undefined;
  #attempt = 0;
  #replied = false;
  /** `#try` is the try that started last. Messages of earlier tries are ignored. */
  #try = "";
  readonly #earlierTries = new Set<string>();
  /**
   * Chunks that were not read yet, by index, because after a disconnection they arrive again in any order. A chunk is
   * acknowledged only when it is read, so that the worker sends no faster than the reader reads.
   */
  readonly #chunks = new Map<number, BusRequest>();
  #taken = 0;
  #complete = false;
  #error: ActorError | undefined;
  #wake: () => void = () => {};

  constructor(bus: Bus, clock: Clock, id: string, task: TaskToRun) {
    this.#bus = bus;
    this.#clock = clock;
    this.#task = task;
    this.#id = id;
    this.#inbox = `${bus.inboxes.tasks}.${id}`;
    this.#queuedAt = clock.monotonic();
    this.#input = Buffer.from(JSON.stringify(task.input));
    this.#done.promise.catch(() => {}); // It is awaited only once the task is queued.
    this.#subscription = bus.answerBelow(this.#inbox, (question) => this.#receive(question));
  }

  get done(): Promise<TaskRun<R>> {
    return this.#done.promise;
  }

  get ended(): AbortSignal {
    return this.#end.signal;
  }

  onEnd(listener: () => void): void {
    this.#end.signal.addEventListener("abort", listener, { once: true });
  }

  /** The error of a missed deadline: no worker took the task, or the worker did not finish it. */
  lateness(): ActorError {
    const { kind } = this.#task;
    return this.#attempt > 0
      ? new ActorError("deadline_exceeded", `Cannot finish ${kind} task: its deadline passed`)
      : new ActorError("unavailable", `Cannot start ${kind} task: no worker was free in time`, {
          retryAfterS: this.#queueS(),
        });
  }

  /** Ends the run for its caller if the lane has no worker for WORKER_ABSENT_MS while the task waits. */
  async failIfAbsent(): Promise<void> {
    const { kind, workers } = this.#task;
    if (!(await workers.isAbsent(this.#task, this.#queued.signal))) return;
    const text = `Cannot start ${kind} task: no worker runs`;
    this.fail(new ActorError("unavailable", text, { retryAfterS: WORKER_ABSENT_MS / 1_000 }));
  }

  async queue(waitMs: number): Promise<void> {
    const { kind, lane, key, message, from, inTurns } = this.#task;
    const chunks = Math.ceil(this.#input.length / CHUNK_BYTES);
    const task = {
      id: this.#id,
      from,
      key,
      message,
      caller: { inbox: this.#inbox, inputChunks: chunks },
      deadlineAt: this.#clock.now() + waitMs,
      waitMs,
      trace: currentTrace(),
    };
    try {
      // The stream queues a task of one id only once, however often the write is repeated while the stream has no
      // leader.
      const write = () => queueTask(this.#bus, { kind, lane, inTurns }, task);
      this.#sequence = await persist(this.#clock, `queue ${kind} task`, write, this.#end.signal);
      if (this.#end.signal.aborted) this.#takeBack();
    } catch (error) {
      const refusal =
        error instanceof WriteRefused && error.full
          ? new ActorError("queue_full", `Cannot queue ${kind} task: the queue is full`, {
              retryAfterS: this.#queueS(),
            })
          : new ActorError("unavailable", `Cannot queue ${kind} task: the bus did not take it`, {
              retryAfterS: 1,
            });
      this.fail(refusal);
    }
  }

  /** Returns the expected wait in the queue, in seconds: the time that the queue's last task waited. */
  #queueS(): number {
    const { queueTimes } = this.#task;
    return Math.max(1, Math.ceil((queueTimes.of(this.#task) ?? QUEUE_UNKNOWN_MS) / 1_000));
  }

  /** Ends the run for its caller, and cancels the task, whether it waits in a queue or runs. */
  fail(error: ActorError): void {
    if (this.#end.signal.aborted) return;
    this.#error = error;
    // A process that stops may already have closed the bus. The deadline then ends the task.
    if (!this.#bus.connection.isClosed()) {
      this.#bus.connection.publish(cancelSubject(this.#id));
      this.#takeBack();
    }
    this.#finish();
    this.#done.reject(error);
  }

  /**
   * Removes the task from its queue if no worker has started it. A worker that has just pulled the task finds that
   * nobody waits.
   */
  #takeBack(): void {
    if (this.#attempt > 0 || this.#sequence === undefined) return;
    const { jetstream, layout } = this.#bus;
    const { stream } = laneOf(layout, this.#task);
    jetstream.streams.deleteMessage(stream, this.#sequence, false).catch(() => {});
  }

  #finish(): void {
    this.#subscription.close();
    this.#queued.abort(OVER);
    this.#end.abort();
    this.#wake();
  }

  #receive(question: BusRequest): void {
    const [from = "", step, index] = question.subject.slice(this.#inbox.length + 1).split(".");
    if (step === "started") this.#started(from);
    if (this.#earlierTries.has(from)) return;
    if (step === "chunk") {
      this.#take(Number(index), question);
      return;
    }
    if (step === "input") {
      const begin = Number(index) * CHUNK_BYTES;
      question.respond(this.#input.subarray(begin, begin + CHUNK_BYTES));
      return;
    }
    question.respond();
    if (step === "refused") this.fail(this.#seenFromHere(decodeRefusal(question.string())));
    else if (step === "reply" && !this.#replied) {
      this.#replied = true;
      const reply = JSON.parse(question.string()) as R;
      this.#done.resolve({ reply, queuedMs: this.#queuedMs, chunks: this.#read() });
    } else if (step === "end") {
      this.#complete = true;
      this.#wake();
    }
  }

  /**
   * A worker that could not reach this process for a while believes that the caller has left. But the caller waits,
   * so the task failed for another reason, and may succeed when it is repeated.
   */
  #seenFromHere(refusal: ActorError): ActorError {
    if (refusal.code !== "cancelled") return refusal;
    const text = `Cannot finish ${this.#task.kind} task: its worker lost the connection to this process`;
    return new ActorError("unavailable", text, { retryAfterS: 1 });
  }

  #started(from: string): void {
    if (from === this.#try || this.#earlierTries.has(from)) return;
    this.#earlierTries.add(this.#try);
    this.#try = from;
    this.#attempt += 1;
    if (this.#attempt === 1) {
      this.#queued.abort(OVER);
      this.#queuedMs = Math.round(this.#clock.monotonic() - this.#queuedAt);
      this.#task.queueTimes.add(this.#task, this.#queuedMs);
    }
    if (this.#replied && !this.#complete) {
      // The new worker starts from the beginning, but the caller has the first worker's reply, and maybe some bytes.
      const text = "Cannot finish task: its worker died while it answered";
      this.fail(new ActorError("unavailable", text));
    }
  }

  #take(index: number, question: BusRequest): void {
    // The worker sends a chunk again if its acknowledgement was lost, or if the reader is slow. A chunk that was read
    // already only needs the acknowledgement.
    if (index < this.#taken) question.respond();
    else this.#chunks.set(index, question);
    this.#wake();
  }

  async *#read(): AsyncGenerator<Uint8Array> {
    try {
      for (;;) {
        const chunk = this.#chunks.get(this.#taken);
        if (chunk) {
          this.#chunks.delete(this.#taken);
          this.#taken += 1;
          chunk.respond();
          yield chunk.data;
        } else if (this.#error) throw this.#error;
        else if (this.#complete) return;
        else {
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
        }
      }
    } finally {
      // If the reader leaves the loop early, the task is cancelled.
      if (this.#complete) this.#finish();
      else this.fail(new ActorError("cancelled", "Cannot wait: the caller has left"));
    }
  }
}

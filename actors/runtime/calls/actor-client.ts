/** Calls actors, sends them mail and runs tasks, from any process on the bus. */
import { randomBytes } from "node:crypto";
import type { z } from "zod";
import type {
  Calls,
  Contract,
  DeepReadonly,
  Messages,
  Reply,
  Sends,
  TaskContract,
  TaskMessages,
} from "../../../schemas/contract.ts";
import { ActorError, isPassing } from "../../../schemas/errors.ts";
import {
  CALL_DEADLINE_MS,
  CALL_DEADLINE_MS_MAX,
  CALL_RETRY_MS_MAX,
  KEY_CHARS_MAX,
  MESSAGE_BYTES_MAX,
} from "../../../schemas/limits.ts";
import { addressOf, callSubject, openedSubject } from "../../../schemas/subjects.ts";
import type { Bus, ReceivedMessage } from "../bus/bus.ts";
import { type Clock, OVER } from "../lib/clock.ts";
import {
  currentTrace,
  REQUEST_HEADER,
  recordWork,
  type TraceCarrier,
  traceHeaders,
} from "../lib/trace.ts";
import { publishMail } from "../mail/publish-mail.ts";
import { QueueTimes } from "../tasks/queue-times.ts";
import { runTask, type TaskRun } from "../tasks/task-client.ts";
import { WorkerPresence } from "../tasks/worker-presence.ts";
import { batchNumber, CallBatches, isBatchToken } from "./call-batches.ts";
import { CallPlaces } from "./call-places.ts";
import { type CallAnswer, type CallMessage, readAnswer, readBatchAnswers } from "./call-wire.ts";

/** Timeout of one try. Then the call is sent again under the same id, because the host may be suspended. */
export const CALL_TRY_MS = 1_500;
/**
 * The first pause before a call is sent again to a shard whose owner changes. When a new owner opens the shard, calls
 * that were sent at least this long ago are also sent again.
 */
export const CALL_RETRY_MS = 5;
/** How often a client looks for calls whose deadline or try has expired: a hundredth of the default deadline. */
export const CALL_SWEEP_MS = 100;

export interface CallOptions {
  /** Time limit of all tries together. Default: CALL_DEADLINE_MS. */
  deadlineMs?: number;
  /** Aborts when the caller stops waiting. The call may still have its effect. */
  signal?: AbortSignal;
}

export interface ActorClient {
  /**
   * Sends a message and waits for its reply. The client repeats the message until it is answered, but the message has
   * its effect at most once. Rejects with the actor's refusal, or with ActorError `unavailable` (no answer by the
   * deadline, so the effect is unknown), `busy`, `body_too_large` or `cancelled`.
   */
  call<M extends Messages, N extends Calls<M>>(
    contract: Contract<M>,
    key: string,
    message: N,
    input: DeepReadonly<z.input<M[N]["input"]>>,
    options?: CallOptions,
  ): Promise<Reply<M[N]>>;

  /**
   * Sends a message that has no reply. Resolves when the message is durable; the message will then have its effect
   * once.
   */
  send<M extends Messages, N extends Sends<M>>(
    contract: Contract<M>,
    key: string,
    message: N,
    input: DeepReadonly<z.input<M[N]["input"]>>,
  ): Promise<void>;

  /**
   * Queues a task for a worker and waits until the task is done. `key` names the thing that the task works on.
   * Resolves with the reply; the bytes follow. Rejects with the worker's refusal, immediately with `queue_full`, or
   * with `unavailable`, `deadline_exceeded` or `cancelled`. If the signal aborts, the task is cancelled, even while
   * its bytes arrive.
   */
  run<M extends TaskMessages, N extends Calls<M>>(
    contract: TaskContract<M>,
    key: string,
    message: N,
    input: DeepReadonly<z.input<M[N]["input"]>>,
    options: { deadlineMs: number; signal: AbortSignal },
  ): Promise<TaskRun<Reply<M[N]>>>;
}

interface Pending {
  number: number;
  kind: string;
  key: string;
  address: string;
  shard: number;
  message: string;
  input: unknown;
  trace: TraceCarrier | undefined;
  deadlineAt: number;
  /** Monotonic times. */
  startedAt: number;
  givesUpAt: number;
  sentAt: number;
  retryMs: number;
  /** Ends the pause before the next try; undefined while a try is in progress. */
  pause: AbortController | undefined;
  /** The number of the batch that it was sent in last. */
  batch: number;
  /** How often it was sent. */
  tries: number;
  /** Releases its place. */
  release(): void;
  resolve(reply: unknown): void;
  reject(error: ActorError): void;
}

export class BusActorClient implements ActorClient {
  readonly #bus: Bus;
  readonly #clock: Clock;
  readonly #client = randomBytes(6).toString("hex");
  readonly #inbox: string;
  readonly #batches: CallBatches;
  readonly #pending = new Map<number, Pending>();
  readonly #places = new CallPlaces();
  /** Numbers of unanswered calls by address, the oldest first. */
  readonly #unsettled = new Map<string, Set<number>>();
  readonly #queueTimes = new QueueTimes();
  readonly #workers: WorkerPresence;
  #lastNumber = 0;
  #sweeping = false;

  constructor(bus: Bus, clock: Clock) {
    this.#bus = bus;
    this.#clock = clock;
    this.#inbox = `${bus.inboxes.answers}.${this.#client}`;
    this.#batches = new CallBatches(bus, this.#inbox);
    this.#workers = new WorkerPresence(bus, clock);
    bus.hearBelow(this.#inbox, (heard) => this.#receive(heard));
    // Calls and answers in flight were lost with the connection, so send all unanswered calls again.
    bus.onReconnect(() => {
      for (const pending of this.#pending.values()) {
        if (pending.pause) pending.pause.abort(OVER);
        else this.#send(pending);
      }
    });
    const callback = (error: Error | null, { subject }: { subject: string }) => {
      if (!error) this.#resend(Number(subject.slice(openedSubject("*").length - 1)));
    };
    bus.connection.subscribe(openedSubject("*"), { callback });
  }

  call<M extends Messages, N extends Calls<M>>(
    contract: Contract<M>,
    key: string,
    message: N,
    input: DeepReadonly<z.input<M[N]["input"]>>,
    { deadlineMs = CALL_DEADLINE_MS, signal }: CallOptions = {},
  ): Promise<Reply<M[N]>> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) throw new ActorError("cancelled", "Cannot call: the caller has left");
      const waitMs = Math.min(deadlineMs, CALL_DEADLINE_MS_MAX);
      const address = checkedAddress(contract.kind, key);
      this.#lastNumber += 1;
      const pending: Pending = {
        number: this.#lastNumber,
        ...{ kind: contract.kind, key },
        ...{ address, shard: this.#bus.shardOf(address) },
        message,
        input,
        trace: currentTrace(),
        deadlineAt: this.#clock.now() + waitMs,
        startedAt: performance.now(),
        givesUpAt: this.#clock.monotonic() + waitMs,
        sentAt: 0,
        batch: 0,
        retryMs: CALL_RETRY_MS,
        pause: undefined,
        tries: 0,
        release: this.#places.take(contract.kind),
        // The host parsed the reply by the contract's schema.
        resolve: resolve as (reply: unknown) => void,
        reject,
      };
      this.#keep(pending, signal);
      try {
        this.#send(pending);
      } catch (error) {
        this.#settle(pending);
        throw error;
      }
      if (!this.#sweeping) void this.#sweep();
    });
  }

  async send<M extends Messages, N extends Sends<M>>(
    contract: Contract<M>,
    key: string,
    message: N,
    input: DeepReadonly<z.input<M[N]["input"]>>,
  ): Promise<void> {
    const address = checkedAddress(contract.kind, key);
    await publishMail(this.#bus, this.#clock, {
      id: randomBytes(12).toString("hex"),
      from: this.#client,
      address,
      message,
      input,
    });
  }

  run<M extends TaskMessages, N extends Calls<M>>(
    contract: TaskContract<M>,
    key: string,
    message: N,
    input: DeepReadonly<z.input<M[N]["input"]>>,
    options: { deadlineMs: number; signal: AbortSignal },
  ): Promise<TaskRun<Reply<M[N]>>> {
    const lane = contract.messages[message]?.lane ?? "";
    const { kind, inTurns = false } = contract;
    const task = { kind, lane, key, message, input, inTurns };
    const mine = { from: this.#client, queueTimes: this.#queueTimes, workers: this.#workers };
    return runTask(this.#bus, this.#clock, { ...task, ...mine }, options);
  }

  #keep(pending: Pending, signal: AbortSignal | undefined): void {
    const { number, address } = pending;
    this.#pending.set(number, pending);
    const unsettled = this.#unsettled.get(address);
    if (unsettled) unsettled.add(number);
    else this.#unsettled.set(address, new Set([number]));
    if (!signal) return;
    const leave = () =>
      this.#refuse(pending, new ActorError("cancelled", "Cannot wait: the caller has left"));
    signal.addEventListener("abort", leave, { once: true });
    const { resolve, reject } = pending;
    pending.resolve = (reply) => {
      signal.removeEventListener("abort", leave);
      resolve(reply);
    };
    pending.reject = (error) => {
      signal.removeEventListener("abort", leave);
      reject(error);
    };
  }

  #send(pending: Pending): void {
    const { address, shard, number, message, input, deadlineAt } = pending;
    const isFirst = pending.sentAt === 0;
    pending.sentAt = this.#clock.monotonic();
    const [settled = number] = this.#unsettled.get(address) ?? [];
    const call: CallMessage = { message, input, client: this.#client, number, settled, deadlineAt };
    const request = pending.trace?.[REQUEST_HEADER];
    if (request !== undefined) call.request = request;
    const payload = JSON.stringify(call);
    // Later, the error would end the repetition of all calls.
    if (isFirst && Buffer.byteLength(payload) > MESSAGE_BYTES_MAX) {
      const text = `the message is larger than ${MESSAGE_BYTES_MAX} bytes`;
      throw new ActorError("body_too_large", `Cannot call ${address}: ${text}`);
    }
    // A message would be dropped now. The reconnection sends this call again.
    if (this.#bus.isAway) return;
    pending.tries += 1;
    if (!pending.trace?.traceparent) pending.batch = this.#batches.add(address, number, payload);
    else {
      // A message with trace headers cannot be joined with others, so it is sent alone.
      this.#bus.publish(callSubject(shard, address), payload, {
        reply: `${this.#inbox}.${number}`,
        headers: traceHeaders(pending.trace),
      });
    }
  }

  #receive(heard: ReceivedMessage): void {
    const token = heard.subject.slice(this.#inbox.length + 1);
    const pending = this.#pending.get(Number(token));
    if (pending) this.#take(pending, readAnswer(heard));
    else if (!isBatchToken(token)) return;
    else if (!heard.headers) {
      for (const { number, answer } of readBatchAnswers(heard)) {
        const answered = this.#pending.get(number);
        if (answered) this.#take(answered, answer);
      }
    } else {
      // This answer concerns all calls of the message: nobody owned the shard, or the message cannot be read.
      const answer = readAnswer(heard);
      for (const sent of this.#sentIn(batchNumber(token))) this.#take(sent, answer);
    }
  }

  /**
   * Yields the waiting calls of a batch. All of them went to one actor. While the first call waits, it names this
   * actor, so that only the actor's calls are searched.
   */
  *#sentIn(batch: number): Generator<Pending> {
    const first = this.#pending.get(batch);
    const numbers = first ? this.#unsettled.get(first.address) : this.#pending.keys();
    for (const number of numbers ?? []) {
      const pending = this.#pending.get(number);
      if (pending?.batch === batch) yield pending;
    }
  }

  #take(pending: Pending, answer: CallAnswer): void {
    if ("reply" in answer) {
      this.#settle(pending);
      if (pending.trace) recordCall(pending);
      pending.resolve(answer.reply);
    } else if ("misdirected" in answer) {
      // No try was run, so it may get a new deadline. The old one has passed because the time of day has jumped.
      if (answer.isLate && pending.tries === 1)
        pending.deadlineAt = this.#clock.now() + pending.givesUpAt - this.#clock.monotonic();
      this.#sendLater(pending);
    }
    // The refusal concerns this try only. An earlier try may have had its effect; then the actor still keeps the
    // reply, and another try gets it.
    else if (isPassing(answer.refusal) && pending.tries > 1) this.#sendLater(pending);
    else this.#refuse(pending, answer.refusal);
  }

  /**
   * Called when the shard has a new owner. Calls that were sent earlier may be lost: the former owner has died, or a
   * server of the cluster still routed them to the former owner. Calls that were sent just now have probably reached
   * the new owner.
   */
  #resend(shard: number): void {
    const now = this.#clock.monotonic();
    for (const pending of this.#pending.values()) {
      if (pending.shard !== shard) continue;
      // The pauses were for the former owner. A try that crossed with this message is sent again soon.
      pending.retryMs = CALL_RETRY_MS;
      if (pending.pause) pending.pause.abort(OVER);
      else if (now - pending.sentAt >= CALL_RETRY_MS) this.#send(pending);
    }
  }

  #sendLater(pending: Pending): void {
    // The answer belongs to an earlier try. The pause before the next try has already begun.
    if (pending.pause) return;
    const pauseMs = pending.retryMs;
    pending.retryMs = Math.min(pauseMs * 2, CALL_RETRY_MS_MAX);
    pending.sentAt = this.#clock.monotonic();
    pending.pause = new AbortController();
    void this.#clock.wait(pauseMs, pending.pause.signal).then(() => {
      pending.pause = undefined;
      if (this.#pending.has(pending.number)) this.#send(pending);
    });
  }

  /** While calls wait, refuses calls past their deadline, and sends calls again that a suspended host may hold. */
  async #sweep(): Promise<void> {
    this.#sweeping = true;
    while (this.#pending.size > 0) {
      await this.#clock.wait(CALL_SWEEP_MS);
      const now = this.#clock.monotonic();
      for (const pending of this.#pending.values()) {
        if (now >= pending.givesUpAt) {
          const text = `Cannot reach ${pending.address}: no answer in time`;
          this.#refuse(pending, new ActorError("unavailable", text, { retryAfterS: 1 }));
        } else if (now - pending.sentAt >= CALL_TRY_MS) this.#send(pending);
      }
    }
    this.#sweeping = false;
  }

  #refuse(pending: Pending, error: ActorError): void {
    this.#settle(pending);
    if (pending.trace) recordCall(pending, error);
    pending.reject(error);
  }

  #settle({ number, address, release }: Pending): void {
    release();
    this.#pending.delete(number);
    const unsettled = this.#unsettled.get(address);
    unsettled?.delete(number);
    if (unsettled?.size === 0) this.#unsettled.delete(address);
  }
}

function recordCall({ kind, key, message, trace, startedAt }: Pending, failure?: ActorError): void {
  recordWork({ way: "call", kind, message, key }, trace, { startedAt, failure });
}

function checkedAddress(kind: string, key: string): string {
  const address = key.isWellFormed() ? addressOf(kind, key) : "";
  if (key === "" || address === "" || address.length > KEY_CHARS_MAX) {
    throw new ActorError(
      "invalid_request",
      `Cannot address ${kind}: a key has 1 to ${KEY_CHARS_MAX - kind.length - 1} characters`,
    );
  }
  return address;
}

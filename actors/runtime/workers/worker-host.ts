/** Runs workers: pulls one task for each free slot of a lane, and reports the end of every task to its caller. */
import type { Logger } from "pino";
import type { Contract, Envelope, TaskSchema } from "../../../schemas/contract.ts";
import { ActorError } from "../../../schemas/errors.ts";
import {
  FAILURE_TRIES_MAX,
  READER_RETRY_MS,
  TASK_END_MS,
  TASK_RETRY_MS,
  TASK_RUN_MS_MAX,
  TASK_TRIES_MAX,
  TELL_MS_MAX,
} from "../../../schemas/limits.ts";
import { laneOf } from "../../../schemas/split-streams.ts";
import { taskConsumer } from "../../../schemas/subjects.ts";
import type { Bus } from "../bus/bus.ts";
import { InvalidInput } from "../bus/refusal.ts";
import { type ActorClient, BusActorClient, type CallOptions } from "../calls/actor-client.ts";
import { type Clock, OVER } from "../lib/clock.ts";
import { inSpan } from "../lib/trace.ts";
import { buryTask } from "../mail/dead-letters.ts";
import type { ServiceCounts } from "../observe/service-counts.ts";
import type { Task } from "../tasks/task.ts";
import { type AnyWorkerDefinition, envelopesOf, type TaskContext } from "./define-worker.ts";
import { handBack, handBackAfterLoss, hasLostBus, readTask, triesOf } from "./hand-back.ts";
import type { PulledMessage } from "./pulled-message.ts";
import { CallerGone, TaskCaller } from "./task-caller.ts";
import {
  DeadlinePassed,
  FAULT_CODES,
  HostStopping,
  refusalOfTask,
  tryAgain,
} from "./task-faults.ts";
import { TaskLease } from "./task-lease.ts";
import { TaskNews, TaskTaken } from "./task-news.ts";
import { type PulledTask, TaskPuller, type TaskSource } from "./task-puller.ts";
import { TaskSends } from "./task-sends.ts";
import { TurnPuller } from "./turn-puller.ts";

export interface WorkerHostParts {
  bus: Bus;
  definitions: readonly AnyWorkerDefinition[];
  clock: Clock;
  logger: Logger;
  counts: ServiceCounts;
}

/** The parts of a running task. */
interface Run {
  definition: AnyWorkerDefinition;
  task: Task;
  message: PulledMessage;
  attempt: number;
  /** The bus's number of lost connections when the run began. */
  disconnections: number;
  signal: AbortSignal;
  lease: TaskLease;
  caller: TaskCaller | undefined;
  sends: TaskSends;
  setWaiting: TaskContext["setWaiting"];
  setAnswering: TaskContext["setAnswering"];
  /** The input as its schema parsed it; absent before it is parsed. */
  input?: unknown;
}

export class WorkerHost {
  readonly #parts: WorkerHostParts;
  readonly #actors: ActorClient;
  readonly #news: TaskNews;
  readonly #stopping = new AbortController();
  readonly #slots: Promise<void>[] = [];
  /** The running tasks, each with the controller of its signal. */
  readonly #running = new Map<Run, AbortController>();
  /** Aborts when `stop` gives up the tasks that still run. */
  readonly #abandoned = new AbortController();

  constructor(parts: WorkerHostParts) {
    this.#parts = parts;
    this.#actors = new BusActorClient(parts.bus, parts.clock);
    this.#news = new TaskNews(parts.bus);
  }

  start(): void {
    for (const definition of this.#parts.definitions) {
      for (const [lane, slots] of Object.entries(definition.slots)) {
        const source = this.#sourceOf(definition, lane, slots);
        for (let slot = 0; slot < slots; slot++) {
          this.#slots.push(this.#serve(definition, source));
        }
      }
    }
  }

  #sourceOf(definition: AnyWorkerDefinition, lane: string, places: number): TaskSource {
    const { bus, clock, logger } = this.#parts;
    const { kind, inTurns } = definition.contract;
    const shared = { bus, clock, logger, stopping: this.#stopping.signal };
    const { stream } = laneOf(shared.bus.layout, { kind, lane });
    if (!inTurns) return new TaskPuller({ ...shared, stream, consumer: taskConsumer(kind, lane) });
    const unbounded = { computing: places, perKey: places, reserved: 0 };
    const limits = { places, ...(definition.turns?.[lane] ?? unbounded) };
    return new TurnPuller({ ...shared, kind, lane, limits });
  }

  /**
   * Pulls no more tasks and finishes the running tasks. Tasks that are not done after `withinMs` are aborted and go
   * to another worker. Waits at most TASK_END_MS for a task that ignores its signal.
   */
  async stop(withinMs: number): Promise<void> {
    const { clock, logger } = this.#parts;
    this.#stopping.abort();
    const finished = new AbortController();
    const idle = Promise.all(this.#slots).finally(() => finished.abort(OVER));
    await clock.wait(withinMs, finished.signal);
    for (const controller of this.#running.values()) controller.abort(new HostStopping());
    await Promise.race([idle, clock.wait(TASK_END_MS, finished.signal)]);
    this.#abandoned.abort();
    const left = [...this.#running.keys()];
    for (const { task, definition } of left) {
      const named = { kind: definition.contract.kind, name: task.message, key: task.key };
      logger.error(named, "task ignored its abort signal, returned to the queue");
    }
    await Promise.all(left.map(({ message, task }) => handBack(this.#parts.bus, message, task)));
    this.#news.stop();
  }

  async #serve(definition: AnyWorkerDefinition, source: TaskSource): Promise<void> {
    const { clock, logger } = this.#parts;
    for (;;) {
      const pulled = await source.take();
      if (!pulled) return;
      try {
        await this.#handle(definition, pulled);
      } catch (error) {
        const { kind } = definition.contract;
        logger.warn({ err: error, kind }, "task not taken, it will be delivered again");
        await clock.wait(READER_RETRY_MS, this.#stopping.signal);
      } finally {
        pulled.release?.();
      }
    }
  }

  async #handle(definition: AnyWorkerDefinition, pulled: PulledTask): Promise<void> {
    const { message, pulledAt } = pulled;
    const { bus, logger, clock, counts } = this.#parts;
    const { kind } = definition.contract;
    const read = readTask(message);
    if (!read.success) {
      logger.error({ err: read.error, kind, sequence: message.seq }, "unreadable task dropped");
      return message.term("unreadable");
    }
    const task = read.data;
    const attempt = triesOf(message, task);
    if (this.#stopping.signal.aborted) return await handBack(bus, message, task);
    const controller = new AbortController();
    const startedAt = clock.monotonic();
    const finished = new AbortController();
    const unlisten = this.#news.listen({ id: task.id, attempt, controller });
    // A task that an actor sent has no deadline, but no task may occupy a slot for ever. A caller cancels its task at
    // the deadline, by a clock that does not jump. Callers of older versions say only the time of day of the deadline.
    const { runMsMax = TASK_RUN_MS_MAX } = definition;
    const untilMs = (task.deadlineAt ?? Number.POSITIVE_INFINITY) - clock.now();
    const waitMs = task.waitMs ?? Math.max(0, untilMs);
    void clock
      .wait(Math.min(waitMs, runMsMax), finished.signal)
      .then(() => controller.abort(new DeadlinePassed()));
    const lease = new TaskLease({ bus, clock, message, pulledAt });
    void lease.keep(AbortSignal.any([finished.signal, this.#abandoned.signal]));
    const { signal } = controller;
    const caller = task.caller && new TaskCaller(bus, clock, task.caller, signal);
    const run: Run = {
      definition,
      task,
      message,
      attempt,
      disconnections: bus.disconnections,
      signal,
      lease,
      caller,
      setWaiting: (isWaiting) => pulled.setWaiting?.(isWaiting),
      setAnswering: () => pulled.setAnswering?.(),
      sends: new TaskSends(bus, clock, task),
    };
    this.#running.set(run, controller);
    try {
      const work = { way: "task", kind, message: task.message, key: task.key } as const;
      const error = await inSpan(work, task.trace, () => this.#run(run));
      const answer = error ? { refusal: error } : { reply: "" };
      counts.count(kind, task.message, answer, clock.monotonic() - startedAt);
    } finally {
      finished.abort(OVER);
      unlisten();
      this.#running.delete(run);
    }
  }

  /** Runs the task and settles its message. Returns the error to count, if any. Never rejects. */
  async #run(run: Run): Promise<ActorError | undefined> {
    const { logger } = this.#parts;
    const { message, task, attempt, definition, signal } = run;
    try {
      if (attempt > TASK_TRIES_MAX) {
        throw new ActorError(
          "internal_error",
          `Cannot finish task: ${TASK_TRIES_MAX} workers ended while they ran it`,
        );
      }
      await this.#finish(run);
      message.ack();
      return undefined;
    } catch (thrown) {
      const error = signal.aborted ? signal.reason : thrown;
      const named = { kind: definition.contract.kind, key: task.key, name: task.message, attempt };
      if (error instanceof CallerGone) {
        const left = new ActorError("cancelled", "Cannot finish task: its asker has left");
        return this.#giveUp(run, thrown instanceof ActorError ? thrown : left);
      }
      if (error instanceof TaskTaken) {
        logger.warn(named, "task was redelivered to another worker, dropped here");
        return undefined;
      }
      if (error instanceof HostStopping) {
        await handBack(this.#parts.bus, message, task);
        return undefined;
      }
      const refusal = refusalOfTask(error, thrown);
      if (!refusal && hasLostBus(this.#parts.bus, run)) {
        logger.warn({ ...named, err: error }, "task lost the bus, it is handed back");
        await handBackAfterLoss({ ...this.#parts, stopping: this.#stopping.signal }, run);
        return undefined;
      }
      if (!refusal && attempt < TASK_TRIES_MAX) {
        logger.warn({ ...named, err: error }, "task failed, will be tried again");
        message.nak(TASK_RETRY_MS * 2 ** (attempt - 1));
        return new ActorError("internal_error", String(error));
      }
      if (!refusal) logger.error({ ...named, err: error }, "task failed for good");
      const told =
        refusal ??
        new ActorError("internal_error", "Cannot finish task: internal error, see the log");
      return this.#giveUp(run, told, error);
    }
  }

  async #finish(run: Run): Promise<void> {
    const { definition, task, attempt, signal, lease, caller, sends } = run;
    const schema = own<TaskSchema>(definition.contract.messages, task.message);
    const handler = own(definition.handlers, task.message);
    if (!schema || !handler) {
      const text = `Cannot run task: ${definition.contract.kind} has no "${task.message}"`;
      throw new ActorError("invalid_request", text);
    }
    signal.throwIfAborted();
    const input = caller ? await caller.start(task.input) : task.input;
    const parsed = schema.input.safeParse(input);
    if (!parsed.success) throw new InvalidInput(task.message, parsed.error);
    run.input = parsed.data;
    // The caller may have left while it sent its input. A handler that listens for `abort` only later would wait for
    // ever.
    signal.throwIfAborted();
    const work = handler(parsed.data, {
      id: task.id,
      key: task.key,
      signal,
      lapsed: lease.lapsed,
      isSure: () => lease.isSure(),
      attempt,
      setWaiting: run.setWaiting,
      setAnswering: run.setAnswering,
      send: async (envelopes, { id } = {}) => {
        signal.throwIfAborted();
        await sends.send(envelopes, id);
      },
      tell: async (envelope) => {
        signal.throwIfAborted();
        return await this.#tell(envelope, run);
      },
      tellByCall: async (envelope) => {
        signal.throwIfAborted();
        await this.#callWith(envelope, { signal }).catch(tryAgain);
      },
      call: (contract, key, message, given, { signal: own, ...options } = {}) => {
        const either = own ? AbortSignal.any([signal, own]) : signal;
        return this.#actors
          .call(contract, key, message, given, { ...options, signal: either })
          .catch(tryAgain);
      },
    });
    const outcome = await this.#heeding(run, work);
    let unheard: unknown;
    if (caller && schema.reply) {
      const reply = JSON.stringify(schema.reply.parse(outcome.reply));
      unheard = await caller.answer(reply, outcome.chunks).catch((error: unknown) => error);
      // Chunks that nobody has begun to read release nothing themselves, so the signal ends the work behind them.
      if (unheard !== undefined) this.#running.get(run)?.abort(unheard);
    }
    // The work is done, whether or not its caller received the result.
    await sends.publish(envelopesOf(outcome.send), "sent");
    const tells = envelopesOf(outcome.tell);
    // A task that waits for an actor, TELL_MS_MAX at most for each message, must not hold back another page.
    if (tells.length > 0) run.setAnswering();
    for (const message of tells) await this.#tell(message, run);
    const left = signal.aborted ? signal.reason : unheard;
    if (unheard !== undefined && !(left instanceof CallerGone)) throw unheard;
  }

  /** Calls an actor with a message. If the actor may not have received it, sends it as mail and returns false. */
  async #tell(message: Envelope, { signal, sends }: Run): Promise<boolean> {
    const isTold = await this.#callWith(message, { deadlineMs: TELL_MS_MAX, signal }).then(
      () => true,
      () => false,
    );
    if (!isTold) await sends.send([message], undefined);
    return isTold;
  }

  async #callWith({ kind, key, message, input }: Envelope, options: CallOptions): Promise<void> {
    // Every message with a handler can be called; the contract only says that it has no reply.
    const contract: Contract = { kind, messages: {} };
    await this.#actors.call(contract, key, message as never, input as never, options);
  }

  /**
   * Waits for the work, but at most TASK_END_MS after its signal has aborted. If the process stops, `stop` limits the
   * wait instead.
   */
  async #heeding<T>({ signal, task, definition }: Run, work: Promise<T>): Promise<T> {
    const { clock, logger } = this.#parts;
    const { promise: unheeded, reject } = Promise.withResolvers<never>();
    const ended = new AbortController();
    const giveUp = async () => {
      await clock.wait(TASK_END_MS, ended.signal);
      if (ended.signal.aborted || signal.reason instanceof HostStopping) return;
      const named = { kind: definition.contract.kind, name: task.message, key: task.key };
      logger.error(named, "task ignored its abort signal, its slot is free again");
      reject(signal.reason);
    };
    signal.addEventListener("abort", giveUp, { once: true });
    // Prevents an unhandled rejection if the work fails after it was given up.
    work.catch(() => {});
    try {
      return await Promise.race([work, unheeded]);
    } finally {
      ended.abort(OVER);
      signal.removeEventListener("abort", giveUp);
    }
  }

  /**
   * Gives a task up: reports the error by messages and to the caller's inbox. If that fails, the task comes back and
   * is given up again, a limited number of times.
   */
  async #giveUp(run: Run, error: ActorError, fault: unknown = error): Promise<ActorError> {
    const { definition, task, message, caller, signal, attempt: tries } = run;
    try {
      // No caller waits, so without a dead letter an operator would see nothing.
      if (!caller && FAULT_CODES.has(error.code)) {
        const { kind } = definition.contract;
        await buryTask(this.#parts, { kind, task, subject: message.subject, tries }, fault);
      }
      const input = run.input ?? readInput(run);
      const failed = own(definition.failures, task.message);
      if (failed && input !== undefined) {
        const envelopes = failed(input, error, { id: task.id, key: task.key });
        await run.sends.publish(envelopes, "failed");
      }
      if (!(signal.reason instanceof CallerGone)) await caller?.refuse(error);
      message.term(error.code);
    } catch (cause) {
      if (cause instanceof CallerGone) message.term(error.code);
      else {
        const named = { err: cause, kind: definition.contract.kind, key: task.key };
        const last = run.attempt >= TASK_TRIES_MAX + FAILURE_TRIES_MAX;
        this.#parts.logger.error(
          named,
          `failure not reported, ${last ? "given up" : "will be tried again"}`,
        );
        if (last) message.term(error.code);
        else message.nak(TASK_RETRY_MS);
      }
    }
    return error;
  }
}

/**
 * Returns the input of a task that never reached its handler; undefined if the caller still holds the input, or if it
 * is not valid.
 */
function readInput({ definition, task }: Run): unknown {
  return own<TaskSchema>(definition.contract.messages, task.message)?.input.safeParse(task.input)
    .data;
}

/** Returns an own property of a record, because a task may have the name of a property that every object inherits. */
const own = <T>(record: Record<string, T>, name: string): T | undefined =>
  Object.hasOwn(record, name) ? record[name] : undefined;

/** Pulls tasks of a lane for its idle slots, several in one request, and gives each task to one slot. */
import type { Logger } from "pino";
import { READER_RETRY_MS } from "../../../schemas/limits.ts";
import type { Bus } from "../bus/bus.ts";
import { isSingleServer } from "../bus/reads/read-in-order.ts";
import type { Clock } from "../lib/clock.ts";
import { pullTasks } from "./pull-tasks.ts";
import type { PulledMessage } from "./pulled-message.ts";

/** Limits the tasks of one pull, however many slots are idle, because passing on a task takes only a millisecond. */
export const LANE_PULL_TASKS_MAX = 4;
/** How long one pull waits for a task. In a cluster a pull can be lost with a server, and is then sent again soon. */
export const TASK_PULL_MS = 1_000;
/**
 * On a single server, a pull waits this long after a pull without a task. An instance has 16 lanes, and their pulls are
 * most of its work while it is idle. A worker relies on a task for TASK_SURE_MS after the pull, so two seconds are left.
 */
export const IDLE_PULL_MS = 3_000;
/** A pull whose end does not arrive within this time after it expired is lost. */
const PULL_LATE_MS = 1_000;

export interface PulledTask {
  message: PulledMessage;
  /** Monotonic time of the pull. */
  pulledAt: number;
  /**
   * Only in a lane that serves keys in turn: called when the task starts to wait for the network, and when it
   * computes again.
   */
  setWaiting?(isWaiting: boolean): void;
  /** Only in a lane that serves keys in turn: called when the task only has to send its result. */
  setAnswering?(): void;
  /** Only in a lane that serves keys in turn: called once, when the task has ended. */
  release?(): void;
}

/** The source of a lane's tasks for its slots. */
export interface TaskSource {
  /** Resolves with the next task for one slot, or with undefined when the worker stops. Never rejects. */
  take(): Promise<PulledTask | undefined>;
}

interface TaskPullerParts {
  bus: Bus;
  clock: Clock;
  logger: Logger;
  /** The names of the lane's stream and of its consumer there. */
  stream: string;
  consumer: string;
  /** Aborts when no more tasks are wanted. */
  stopping: AbortSignal;
}

export class TaskPuller implements TaskSource {
  readonly #parts: TaskPullerParts;
  /** The resolve functions of the idle slots, which wait for a task. */
  readonly #idle: ((pulled: PulledTask | undefined) => void)[] = [];
  /** Number of tasks that were requested and have not arrived; never more than the idle slots. */
  #asked = 0;
  #waitMs = TASK_PULL_MS;

  constructor(parts: TaskPullerParts) {
    this.#parts = parts;
  }

  take(): Promise<PulledTask | undefined> {
    return new Promise((resolve) => {
      this.#idle.push(resolve);
      // Defers the pull, so that slots that become idle together share one pull.
      queueMicrotask(() => this.#ask());
    });
  }

  #ask(): void {
    if (this.#parts.stopping.aborted) {
      // Keeps one slot for each requested task, which may still arrive.
      while (this.#idle.length > this.#asked) this.#idle.pop()?.(undefined);
      return;
    }
    const wanted = Math.min(this.#idle.length, LANE_PULL_TASKS_MAX);
    // Does not pull for each task that arrives, so that a lane with many idle slots pulls less often than tasks
    // arrive.
    if (this.#asked < wanted / 2) void this.#pull(wanted - this.#asked);
  }

  async #pull(count: number): Promise<void> {
    const { bus, clock, logger, stream, consumer, stopping } = this.#parts;
    const expiresMs = this.#waitMs;
    let missing = count;
    this.#asked += count;
    const take = (message: PulledMessage, pulledAt: number) => {
      missing -= 1;
      this.#asked -= 1;
      this.#waitMs = TASK_PULL_MS;
      this.#idle.shift()?.({ message, pulledAt });
      this.#ask();
    };
    // A worker that stops does not wait for a long pull. A task that the server sends in the same moment may be lost
    // until its acknowledgement is due. That is possible only in a lane without tasks for some time.
    const isLong = expiresMs > TASK_PULL_MS;
    const limits = { expiresMs, giveUpMs: expiresMs + PULL_LATE_MS };
    const pull = { bus, clock, stream, consumer, count, ...limits, take };
    try {
      await pullTasks({ ...pull, ...(isLong && { leave: stopping }) });
      if (missing === count && isSingleServer(bus)) this.#waitMs = IDLE_PULL_MS;
    } catch (error) {
      logger.warn({ err: error, consumer }, "tasks not pulled, will try again");
      await clock.wait(READER_RETRY_MS, stopping);
    }
    this.#asked -= missing;
    this.#ask();
  }
}

/** Keeps a task with its worker, and knows from when on another worker may receive the task. */
import { TASK_ACK_WAIT_MS } from "../../../schemas/limits.ts";
import type { Bus } from "../bus/bus.ts";
import type { Clock } from "../lib/clock.ts";
import type { PulledMessage } from "./pulled-message.ts";

export const TASK_HEARTBEAT_MS = 2_000;
/**
 * A worker that gets no answer of the bus for this long stops relying on its task, one second before another worker
 * can receive the task.
 */
export const TASK_SURE_MS = TASK_ACK_WAIT_MS - 1_000;

interface TaskLeaseParts {
  bus: Bus;
  clock: Clock;
  message: Pick<PulledMessage, "working">;
  /**
   * Monotonic time of the pull. The arrival of the message does not count, because the message may have waited in
   * this process's socket.
   */
  pulledAt: number;
}

export class TaskLease {
  readonly #parts: TaskLeaseParts;
  readonly #lapsed = new AbortController();
  #sureUntil: number;

  constructor(parts: TaskLeaseParts) {
    this.#parts = parts;
    this.#sureUntil = parts.pulledAt + TASK_SURE_MS;
  }

  /** Aborts, permanently, when another worker may soon receive the task. */
  get lapsed(): AbortSignal {
    return this.#lapsed.signal;
  }

  /** Compares the clock, because a process that was suspended may run work before its timers. */
  isSure(): boolean {
    if (this.#parts.clock.monotonic() > this.#sureUntil) this.#lapsed.abort(new LeaseLapsed());
    return !this.#lapsed.signal.aborted;
  }

  /** Reports every TASK_HEARTBEAT_MS that the worker still runs the task, until the task is finished. */
  async keep(finished: AbortSignal): Promise<void> {
    void this.#watch(finished);
    // A task of a long pull has less time left, so the first report cannot wait.
    if (this.#sureUntil - this.#parts.clock.monotonic() < 2 * TASK_HEARTBEAT_MS) this.#say();
    while (!finished.aborted) {
      await this.#parts.clock.wait(TASK_HEARTBEAT_MS, finished);
      if (!finished.aborted) this.#say();
    }
  }

  async #watch(finished: AbortSignal): Promise<void> {
    const { clock } = this.#parts;
    while (!finished.aborted && this.isSure()) {
      await clock.wait(this.#sureUntil + 1 - clock.monotonic(), finished);
    }
  }

  #say(): void {
    const { bus, clock, message } = this.#parts;
    const saidAt = clock.monotonic();
    message.working();
    // The server answers the flush after it has taken the report.
    const heard = bus.whileConnected(() => bus.connection.flush());
    heard.then(
      () => {
        this.#sureUntil = Math.max(this.#sureUntil, saidAt + TASK_SURE_MS);
      },
      () => {
        // The bus is away: the time runs on.
      },
    );
  }
}

class LeaseLapsed extends Error {}

/** Keeps a task with the worker that runs it, and says from when on another may be given it. */
import { TASK_HEARTBEAT_MS, TASK_SURE_MS } from "../../../schemas/limits.ts";
import type { Bus } from "../bus/bus.ts";
import type { Clock } from "../lib/clock.ts";
import type { PulledMessage } from "./pulled-message.ts";

interface TaskLeaseParts {
  bus: Bus;
  clock: Clock;
  message: Pick<PulledMessage, "working">;
  /** By the monotonic clock: when it was asked for, since it may have lain in our socket. */
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

  /** Aborts when another worker may soon be given the task; so it stays, whatever comes of it. */
  get lapsed(): AbortSignal {
    return this.#lapsed.signal;
  }

  /** By the clock: a process that stood still finds work before it finds that the time is over. */
  isSure(): boolean {
    if (this.#parts.clock.monotonic() > this.#sureUntil) this.#lapsed.abort(new LeaseLapsed());
    return !this.#lapsed.signal.aborted;
  }

  /** Says that the task is being worked at until it is finished, also when it was not sure for a while. */
  async keep(finished: AbortSignal): Promise<void> {
    void this.#watch(finished);
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
    // What the server answers after it, it has taken after it.
    const heard = bus.whileConnected(() => bus.connection.flush());
    heard.then(
      () => {
        this.#sureUntil = Math.max(this.#sureUntil, saidAt + TASK_SURE_MS);
      },
      () => {
        // The bus is away: the time goes on.
      },
    );
  }
}

class LeaseLapsed extends Error {}

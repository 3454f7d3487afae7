/** Remembers how long the last task of each queue waited. A client whose task is refused should wait as long. */
import type { TaskQueue } from "./queue-task.ts";

/** Limits the queues whose last waiting time a client remembers, for Retry-After. */
const QUEUE_TIMES_MAX = 1_000;

/** The queue of a task. Each key has its own queue if `inTurns` is true. */
type Queue = TaskQueue & { key: string };

export class QueueTimes {
  /** The waiting times in milliseconds by queue, in the order of use; the queue that was used last is last. */
  readonly #times = new Map<string, number>();

  /** Returns the waiting time of the queue's last task; undefined if no task of the queue has started. */
  of(queue: Queue): number | undefined {
    return this.#times.get(nameOf(queue));
  }

  add(queue: Queue, ms: number): void {
    const name = nameOf(queue);
    this.#times.delete(name);
    this.#times.set(name, ms);
    for (const oldest of this.#times.keys()) {
      if (this.#times.size <= QUEUE_TIMES_MAX) break;
      this.#times.delete(oldest);
    }
  }
}

const nameOf = ({ kind, lane, key, inTurns }: Queue) => `${kind}.${lane}.${inTurns ? key : ""}`;

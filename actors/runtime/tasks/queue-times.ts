/** Remembers how long the last task of each queue waited, which a refused client should wait too. */

/** Keys whose last queueing time a client remembers, for Retry-After. */
const QUEUE_TIMES_MAX = 1_000;

interface Queue {
  kind: string;
  lane: string;
  key: string;
  /** Whether the key has a queue of its own. */
  inTurns: boolean;
}

export class QueueTimes {
  /** In the order of use, the last used queue last. */
  readonly #times = new Map<string, number>();

  /** Undefined for a queue from which no task has started. */
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

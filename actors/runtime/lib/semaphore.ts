/**
 * Limits how many pieces of work run at the same time. Further work waits, and starts in the order of its arrival.
 */
import { FairSemaphore } from "./fair-semaphore.ts";

/** The owner of all work. */
const ANYBODY = "";

export class Semaphore {
  readonly #places: FairSemaphore;

  constructor(size: number) {
    this.#places = new FairSemaphore({ places: size });
  }

  /** Places that nobody holds. */
  get free(): number {
    return this.#places.free;
  }

  /** How many wait for a place. */
  get waiting(): number {
    return this.#places.waitingOf(ANYBODY);
  }

  /** Runs the work as soon as a place is free. Rejects with the error of the work. */
  run<T>(work: () => Promise<T>): Promise<T> {
    return this.#places.run(ANYBODY, work);
  }

  /**
   * Takes a place. Resolves with a function that gives the place back. Rejects with the signal's reason if the signal
   * aborts first.
   */
  take(signal: AbortSignal): Promise<() => void> {
    return this.#places.take(ANYBODY, signal);
  }
}

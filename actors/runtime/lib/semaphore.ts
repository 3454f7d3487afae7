/**
 * Limits how many pieces of work run at the same time. Further work waits, and starts in the order of its arrival.
 */
export class Semaphore {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(size: number) {
    this.#free = size;
  }

  /** Places that nobody holds. */
  get free(): number {
    return this.#free;
  }

  /** How many wait for a place. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Runs the work as soon as a place is free. Rejects with the error of the work. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await this.#wait();
    try {
      return await work();
    } finally {
      this.#giveBack();
    }
  }

  /**
   * Takes a place. Resolves with a function that gives the place back. Rejects with the signal's reason if the signal
   * aborts first.
   */
  async take(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.#free > 0) this.#free -= 1;
    else await this.#wait(signal);
    let isHeld = true;
    return () => {
      if (isHeld) this.#giveBack();
      isHeld = false;
    };
  }

  #wait(signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const enter = () => {
        signal?.removeEventListener("abort", leave);
        resolve();
      };
      const leave = () => {
        this.#waiting.splice(this.#waiting.indexOf(enter), 1);
        reject(signal?.reason);
      };
      signal?.addEventListener("abort", leave, { once: true });
      this.#waiting.push(enter);
    });
  }

  /** Gives the place directly to the caller that has waited longest, so that no later caller overtakes it. */
  #giveBack(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#free += 1;
  }
}

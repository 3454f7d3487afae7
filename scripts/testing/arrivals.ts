/**
 * Determines the earliest time at which a message can have arrived at this process. A suspended process sees messages
 * late.
 */

/** Interval of the timer that reads the clock. A message that is seen now arrived after the third-last reading. */
const LOOK_MS = 1;
const LOOKS = 3;

export interface Arrival {
  /**
   * `at` is the time at which a request was seen, `since` the earliest time at which it can have arrived. Both are
   * times of the machine's clock in fractional ms.
   */
  at: number;
  since: number;
}

export class Arrivals implements Disposable {
  readonly #looks: number[] = Array.from({ length: LOOKS }, now);
  readonly #timer: NodeJS.Timeout;

  constructor() {
    this.#timer = setInterval(() => {
      this.#looks.push(now());
      this.#looks.shift();
    }, LOOK_MS);
  }

  /** Returns the times of an arrival that is seen now. */
  seen(): Arrival {
    const at = now();
    return { at, since: this.#looks[0] ?? at };
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}

function now(): number {
  return performance.timeOrigin + performance.now();
}

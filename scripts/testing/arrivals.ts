/**
 * Tells of something that comes to this process when it came at the earliest: a process that stands still sees it
 * late.
 */

/** How often the process looks at the clock: what it sees came after the last look but two. */
const LOOK_MS = 1;
const LOOKS = 3;

export interface Arrival {
  /**
   * The time at which a request was seen, and the earliest time of its arrival. By the machine's clock, in fractional
   * ms.
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

  /** The arrivals up to now. */
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

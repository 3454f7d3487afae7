/** A random generator with a seed. The same seed repeats the same choices, so that a failed run can be repeated. */

export class SeededRandom {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** Returns a new seed, for a run without a given seed. */
  static newSeed(): number {
    return Math.floor(Math.random() * 2 ** 32);
  }

  /** Returns a random number from 0 to below 1. The algorithm is Mulberry32 (public domain). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number from `min` to `max`, both included. */
  integer(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(choices: readonly T[]): T {
    const choice = choices[this.integer(0, choices.length - 1)];
    if (choice === undefined) throw new Error("Cannot pick: there is nothing to choose from");
    return choice;
  }

  /**
   * Returns a new, independent generator. Drawing more numbers from one of the generators does not change the numbers
   * of the other.
   */
  fork(): SeededRandom {
    return new SeededRandom(this.integer(0, 2 ** 32 - 1));
  }
}

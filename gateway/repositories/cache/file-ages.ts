/**
 * Tells files that something may still use from those of killed processes, also after the time of day was set while
 * this process ran.
 */
import { GIT_CACHE_GRACE_MS } from "../../../schemas/repositories/limits.ts";

/** Smaller differences come from reading two clocks one after the other, and from clocks that run a little faster. */
const SET_MS_MIN = 1_000;

export class FileAges {
  readonly #now: () => number;
  readonly #monotonic: () => number;
  /** How far the time of day is ahead of the clock that is never set. */
  #aheadMs: number;
  /** By how many ms the time of day was set ahead within the last GIT_CACHE_GRACE_MS, and when. */
  #setMs = 0;
  #setAt = Number.NEGATIVE_INFINITY;

  constructor(now: () => number, monotonic = () => performance.now()) {
    this.#now = now;
    this.#monotonic = monotonic;
    this.#aheadMs = now() - monotonic();
  }

  /**
   * Returns true if a file or mark from this time of day is older than any use can be. If the time of day was set
   * ahead, files in use would look that much older. So their ages do not count this time until all uses of that moment
   * have ended. If it was set back, files look younger, and stay longer.
   */
  isPastGrace(at: number): boolean {
    const now = this.#now();
    const monotonic = this.#monotonic();
    const setMs = now - monotonic - this.#aheadMs;
    this.#aheadMs += setMs;
    if (setMs > SET_MS_MIN) {
      this.#setMs += setMs;
      this.#setAt = monotonic;
    } else if (setMs < -SET_MS_MIN) this.#setMs = Math.max(0, this.#setMs + setMs);
    if (monotonic - this.#setAt > GIT_CACHE_GRACE_MS) this.#setMs = 0;
    return now - this.#setMs - at > GIT_CACHE_GRACE_MS;
  }
}

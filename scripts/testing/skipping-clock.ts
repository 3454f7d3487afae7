/**
 * A real clock that a test can move forward. Waits that end within the skipped time end immediately. With `stands`,
 * the monotonic clock and all waits advance only by `skip`, and only `now()` still follows the real time of day.
 */
import { once } from "node:events";
import { type Clock, systemClock } from "../../actors/runtime/lib/clock.ts";

interface Waiter {
  ms: number;
  until: number;
  wake(): void;
}

export class SkippingClock implements Clock {
  readonly #waiters = new Set<Waiter>();
  readonly #stoodAt: number | undefined;
  #skipped = 0;

  constructor({ stands = false } = {}) {
    // Rounds to a whole number, so that sums of times are exact.
    this.#stoodAt = stands ? Math.round(systemClock.monotonic()) : undefined;
  }

  now(): number {
    return systemClock.now() + this.#skipped;
  }

  monotonic(): number {
    return (this.#stoodAt ?? systemClock.monotonic()) + this.#skipped;
  }

  async wait(ms: number, signal?: AbortSignal): Promise<void> {
    const woken = new AbortController();
    const waiter = { ms, until: this.monotonic() + ms, wake: () => woken.abort() };
    this.#waiters.add(waiter);
    // Removes the waiter immediately on abort, so that `isAwaited` does not report a caller that no longer waits.
    signal?.addEventListener("abort", () => this.#waiters.delete(waiter), { once: true });
    const ended = signal ? AbortSignal.any([signal, woken.signal]) : woken.signal;
    if (this.#stoodAt === undefined) await systemClock.wait(ms, ended);
    else if (ms > 0 && !ended.aborted) await once(ended, "abort");
    this.#waiters.delete(waiter);
  }

  /** Returns whether a caller waits for exactly `ms`. */
  isAwaited(ms: number): boolean {
    return [...this.#waiters].some((waiter) => waiter.ms === ms);
  }

  skip(ms: number): void {
    this.#skipped += ms;
    const now = this.monotonic();
    for (const waiter of this.#waiters) if (waiter.until <= now) waiter.wake();
  }
}

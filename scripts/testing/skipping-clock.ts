/**
 * A clock that runs as every clock does, and that a test can put forward: who waits is woken as if that time had
 * passed. One that stands goes on only so, however long anything takes; of the time of day alone it knows how late it
 * is.
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
    // A whole number: sums of times are then exact.
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
    // At once, so that nobody takes it for one who waits still.
    signal?.addEventListener("abort", () => this.#waiters.delete(waiter), { once: true });
    const ended = signal ? AbortSignal.any([signal, woken.signal]) : woken.signal;
    if (this.#stoodAt === undefined) await systemClock.wait(ms, ended);
    else if (ms > 0 && !ended.aborted) await once(ended, "abort");
    this.#waiters.delete(waiter);
  }

  /** Returns whether a caller waits for exactly this time. */
  isAwaited(ms: number): boolean {
    return [...this.#waiters].some((waiter) => waiter.ms === ms);
  }

  skip(ms: number): void {
    this.#skipped += ms;
    const now = this.monotonic();
    for (const waiter of this.#waiters) if (waiter.until <= now) waiter.wake();
  }
}

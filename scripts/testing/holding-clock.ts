/**
 * A real clock, except that waits of one given length are held: such a wait ends only when the test calls `release`
 * or when its signal aborts.
 */
import { once } from "node:events";
import { type Clock, systemClock } from "../../actors/runtime/lib/clock.ts";

export class HoldingClock implements Clock {
  readonly #heldMs: number;
  #released = new AbortController();

  constructor(heldMs: number) {
    this.#heldMs = heldMs;
  }

  now(): number {
    return systemClock.now();
  }

  monotonic(): number {
    return systemClock.monotonic();
  }

  async wait(ms: number, signal?: AbortSignal): Promise<void> {
    const { signal: released } = this.#released;
    if (ms !== this.#heldMs || released.aborted) return await systemClock.wait(ms, signal);
    if (signal?.aborted) return;
    const ended = signal ? AbortSignal.any([signal, released]) : released;
    await once(ended, "abort");
  }

  /** Ends the held waits. Later waits run normally until `hold` is called. */
  release(): void {
    this.#released.abort();
  }

  hold(): void {
    this.#released = new AbortController();
  }
}

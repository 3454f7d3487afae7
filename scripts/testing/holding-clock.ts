/**
 * A clock that runs as every clock does, but for waits of one length: those end when a test lets them, or with their
 * signal.
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

  /** Ends the current waits, and holds no wait until `hold` is called. */
  release(): void {
    this.#released.abort();
  }

  hold(): void {
    this.#released = new AbortController();
  }
}

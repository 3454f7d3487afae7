/**
 * The timeout of a fetch. The timeout pauses while the fetch waits for a place in memory or for another start time.
 */
import { type Clock, OVER } from "../../../runtime/lib/clock.ts";

export class FetchDeadline {
  readonly #controller = new AbortController();
  readonly #clock: Clock;
  readonly #outer: AbortSignal;
  readonly #leave = () => this.#controller.abort(this.#outer.reason);
  #counting = new AbortController();
  #endsAt: number;
  #passed = false;

  constructor(outer: AbortSignal, ms: number, clock: Clock) {
    this.#clock = clock;
    this.#outer = outer;
    this.#endsAt = clock.monotonic() + ms;
    this.#start(ms);
    if (outer.aborted) this.#leave();
    else outer.addEventListener("abort", this.#leave, { once: true });
  }

  /** Aborts with the outer signal, or at the timeout. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get passed(): boolean {
    return this.#passed;
  }

  async pauseFor<T>(waited: Promise<T>): Promise<T> {
    this.#counting.abort(OVER);
    const restMs = this.#endsAt - this.#clock.monotonic();
    try {
      return await waited;
    } finally {
      this.#endsAt = this.#clock.monotonic() + restMs;
      if (!this.signal.aborted) this.#start(restMs);
    }
  }

  extend(ms: number): void {
    this.#counting.abort(OVER);
    this.#endsAt += ms;
    if (!this.signal.aborted) this.#start(this.#endsAt - this.#clock.monotonic());
  }

  clear(): void {
    this.#counting.abort(OVER);
    this.#outer.removeEventListener("abort", this.#leave);
  }

  #start(ms: number): void {
    const counting = new AbortController();
    this.#counting = counting;
    void this.#clock.wait(Math.max(0, ms), counting.signal).then(() => {
      if (counting.signal.aborted) return;
      this.#passed = true;
      this.#controller.abort(new Error("The time for the fetch is over"));
    });
  }
}

/** Time as the runtime sees it, so that a test can hold it in its hands. */
import { setTimeout as sleep } from "node:timers/promises";

export interface Clock {
  /** Epoch milliseconds. */
  now(): number;
  /** Milliseconds of a clock that never steps. */
  monotonic(): number;
  /** Resolves after so long, or at once when the signal aborts. Never rejects. Does not keep a process alive. */
  wait(ms: number, signal?: AbortSignal): Promise<void>;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  async wait(ms, signal) {
    try {
      await sleep(ms, undefined, signal ? { signal, ref: false } : { ref: false });
    } catch (error) {
      if (!signal?.aborted) throw error;
    }
  },
};

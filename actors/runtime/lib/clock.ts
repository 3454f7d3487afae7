/** The clock of the runtime, which a test can replace. */
import { readFileSync } from "node:fs";

export interface Clock {
  /**
   * The same for all clocks with the same `now`: those of one machine, until it restarts. Absent where that is unknown.
   */
  id?: string | undefined;
  /** Epoch milliseconds. */
  now(): number;
  /** Milliseconds of a clock that never steps. */
  monotonic(): number;
  /**
   * Resolves after this many milliseconds, or at once when the signal aborts. Never rejects, and does not keep a
   * process alive.
   */
  wait(ms: number, signal?: AbortSignal): Promise<void>;
}

/** The reason of a signal that only ends a wait: without one a controller makes an exception with its stack. */
export const OVER = "over";

export const systemClock: Clock = {
  id: bootId(),
  now: () => Date.now(),
  monotonic: () => performance.now(),
  // Node's promise-based `setTimeout` makes an error each time that a signal ends it, which is nearly always here.
  wait: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const end = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", end);
        resolve();
      };
      const timer = setTimeout(end, ms).unref();
      signal?.addEventListener("abort", end);
    }),
};

/** The kernel's boot id, which stands for one time of day on all its containers. Linux only. */
function bootId(): string | undefined {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    return undefined;
  }
}

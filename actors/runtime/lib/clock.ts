/** The clock of the runtime, which a test can replace. */
import { readFileSync } from "node:fs";

export interface Clock {
  /**
   * The id of the machine's clock. Clocks with the same id show the same `now`: they are on one machine that has not
   * restarted. Absent if the id is unknown.
   */
  id?: string | undefined;
  /** Epoch milliseconds. */
  now(): number;
  /** Milliseconds of a clock that is never set back or forward. */
  monotonic(): number;
  /**
   * Resolves after this many milliseconds, or as soon as the signal aborts. Never rejects, and does not keep a
   * process alive.
   */
  wait(ms: number, signal?: AbortSignal): Promise<void>;
}

/**
 * The abort reason of a signal that only ends a wait. Without a reason, a controller creates an exception with its
 * stack.
 */
export const OVER = "over";

export const systemClock: Clock = {
  id: bootId(),
  now: () => Date.now(),
  monotonic: () => performance.now(),
  // Node's promise-based `setTimeout` creates an error each time that a signal ends the wait. Here a signal ends
  // nearly every wait.
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

/** Returns the kernel's boot id. All containers on one kernel show the same time of day. Linux only. */
function bootId(): string | undefined {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    return undefined;
  }
}

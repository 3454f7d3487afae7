/** Time as the runtime sees it, so that a test can hold it in its hands. */
import { readFileSync } from "node:fs";

export interface Clock {
  /** The same of all clocks whose `now` is the same: those of one machine, until it starts anew. Absent where that is not known. */
  id?: string | undefined;
  /** Epoch milliseconds. */
  now(): number;
  /** Milliseconds of a clock that never steps. */
  monotonic(): number;
  /** Resolves after so long, or at once when the signal aborts. Never rejects. Does not keep a process alive. */
  wait(ms: number, signal?: AbortSignal): Promise<void>;
}

/** Reason of a signal that ends a wait and is told to nobody: without one a controller makes an exception, stack and all. */
export const OVER = "over";

export const systemClock: Clock = {
  id: bootId(),
  now: () => Date.now(),
  monotonic: () => performance.now(),
  // Node's own `setTimeout` of promises makes an error each time that a signal ends it, which is most of the times here.
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

/** Of the kernel, which keeps one time of day for all its containers. Linux only. */
function bootId(): string | undefined {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    return undefined;
  }
}

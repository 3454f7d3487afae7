/** Limits how long a caller waits: by a signal or by a time. */
import { setImmediate as turn } from "node:timers/promises";
import { type Clock, OVER } from "./clock.ts";

/** Settles as the work does, or rejects with the signal's reason as soon as the signal aborts. */
export async function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason);
  if (signal.aborted) abort();
  else signal.addEventListener("abort", abort, { once: true });
  // Prevents an unhandled rejection if the work fails after the signal has aborted.
  work.catch(() => {});
  try {
    return await Promise.race([aborted, work]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

interface TimeLimit {
  ms: number;
  /** The error of the limit. */
  error: () => Error;
  signal: AbortSignal;
  clock: Clock;
}

/**
 * Settles as the work does, or rejects at the time limit or when the signal aborts. The signal of `work` aborts when
 * its result is no longer needed.
 */
export async function within<T>(
  { ms, error, signal, clock }: TimeLimit,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  using timeout = new Timeout({ ms, error, clock });
  const ended = AbortSignal.any([signal, timeout.signal]);
  return await abortable(work(ended), ended);
}

/** Makes a signal that aborts after this many milliseconds, unless it is disposed of before. */
export class Timeout {
  readonly signal: AbortSignal;
  readonly #stop = new AbortController();

  constructor({ ms, error, clock }: Pick<TimeLimit, "ms" | "error" | "clock">) {
    const timeout = new AbortController();
    this.signal = timeout.signal;
    void clock.wait(Math.max(0, ms), this.#stop.signal).then(async () => {
      // After a stall, a process runs its timers before it reads the messages that arrived meanwhile. So wait one
      // turn, in which the work may end.
      if (!this.#stop.signal.aborted) await turn();
      if (!this.#stop.signal.aborted) timeout.abort(error());
    });
  }

  [Symbol.dispose](): void {
    this.#stop.abort(OVER);
  }
}

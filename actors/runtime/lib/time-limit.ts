/** Ends waiting: by a signal, or after so long. */
import { setImmediate as turn } from "node:timers/promises";
import type { Clock } from "./clock.ts";

/** The outcome of the work, or the signal's reason as soon as it aborts. */
export async function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason);
  if (signal.aborted) abort();
  else signal.addEventListener("abort", abort, { once: true });
  // Whichever comes second has nobody who listens.
  work.catch(() => {});
  try {
    return await Promise.race([aborted, work]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

interface TimeLimit {
  ms: number;
  /** What it fails with after that. */
  error: () => Error;
  signal: AbortSignal;
  clock: Clock;
}

/** The outcome of the work, which is told by a signal when it need not go on. */
export async function within<T>(
  { ms, error, signal, clock }: TimeLimit,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  using timeout = new Timeout({ ms, error, clock });
  const ended = AbortSignal.any([signal, timeout.signal]);
  return await abortable(work(ended), ended);
}

/** A signal that aborts after so long, unless it is disposed of before. */
export class Timeout {
  readonly signal: AbortSignal;
  readonly #stop = new AbortController();

  constructor({ ms, error, clock }: Pick<TimeLimit, "ms" | "error" | "clock">) {
    const timeout = new AbortController();
    this.signal = timeout.signal;
    void clock.wait(Math.max(0, ms), this.#stop.signal).then(async () => {
      // A process that stood still hears its timers first, and what came meanwhile after them: it may be what is awaited.
      if (!this.#stop.signal.aborted) await turn();
      if (!this.#stop.signal.aborted) timeout.abort(error());
    });
  }

  [Symbol.dispose](): void {
    this.#stop.abort();
  }
}

/** Runs one piece of work for all callers that wait for the same result. */

interface Running<T> {
  result: Promise<T>;
  waiting: number;
  ends: AbortController;
}

export class SharedWork<T> {
  readonly #running = new Map<string, Running<T>>();

  /** Returns whether work of this name is running. */
  has(name: string): boolean {
    return this.#running.has(name);
  }

  /**
   * Waits for the running work of this name, or starts it. Rejects with the signal's reason if the signal aborts first.
   * The signal of the work aborts when nobody waits for it any more, and when it has settled.
   */
  async run(
    name: string,
    signal: AbortSignal,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    signal.throwIfAborted();
    const running = this.#running.get(name) ?? this.#start(name, work);
    running.waiting += 1;
    try {
      return await orAborted(running.result, signal);
    } finally {
      running.waiting -= 1;
      if (running.waiting === 0) this.#end(name, running);
    }
  }

  #start(name: string, work: (signal: AbortSignal) => Promise<T>): Running<T> {
    const ends = new AbortController();
    const running = { result: work(ends.signal), waiting: 0, ends };
    this.#running.set(name, running);
    const end = () => this.#end(name, running);
    running.result.then(end, end);
    return running;
  }

  #end(name: string, running: Running<T>): void {
    // After this, a new caller starts the work anew.
    if (this.#running.get(name) === running) this.#running.delete(name);
    running.ends.abort();
  }
}

function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const leave = () => reject(signal.reason);
    signal.addEventListener("abort", leave, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", leave));
  });
}

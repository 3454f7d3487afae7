/**
 * Limits how many pieces of work of several owners, such as accounts, run at the same time. A free place goes to the
 * waiting owner that has the fewest places.
 */

export interface FairLimits {
  /** Places of all owners together. */
  places: number;
  /**
   * Places that only owners without a place may take, so that work which never ends cannot delay the first work of
   * another owner. One owner gets the others at most. Defaults to 0.
   */
  reserved?: number;
}

interface OwnersWork {
  held: number;
  /** The functions that start the waiting work, the oldest first. */
  waiting: Set<() => void>;
}

export class FairSemaphore {
  readonly #reserved: number;
  #free: number;
  /** The owners with places or waiting work. The owner whose work ended last is last. */
  readonly #owners = new Map<string, OwnersWork>();

  constructor({ places, reserved = 0 }: FairLimits) {
    this.#free = places;
    this.#reserved = reserved;
  }

  /** Places that nobody holds. */
  get free(): number {
    return this.#free;
  }

  /** Returns how much work of the owner waits for a place. */
  waitingOf(owner: string): number {
    return this.#owners.get(owner)?.waiting.size ?? 0;
  }

  /** Returns the semaphore as one owner uses it. */
  of(owner: string): { take(signal: AbortSignal): Promise<() => void> } {
    return { take: (signal) => this.take(owner, signal) };
  }

  /**
   * Takes a place for the owner. Resolves with a function that gives the place back and may be called again. Rejects
   * with the signal's reason if the signal aborts first.
   */
  take(owner: string, signal?: AbortSignal): Promise<() => void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const work = this.#owners.get(owner) ?? { held: 0, waiting: new Set() };
      this.#owners.set(owner, work);
      const leave = () => {
        work.waiting.delete(enter);
        this.#forgetIdle(owner, work);
        reject(signal?.reason);
      };
      const enter = () => {
        signal?.removeEventListener("abort", leave);
        let isHeld = true;
        resolve(() => {
          if (isHeld) this.#giveBack(owner, work);
          isHeld = false;
        });
      };
      signal?.addEventListener("abort", leave, { once: true });
      work.waiting.add(enter);
      this.#startNext();
    });
  }

  /** Runs the work as soon as the owner has a place. Rejects with the error of the work, or the signal's reason. */
  async run<T>(owner: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const leave = await this.take(owner, signal);
    try {
      return await work();
    } finally {
      leave();
    }
  }

  #giveBack(owner: string, work: OwnersWork): void {
    work.held -= 1;
    this.#free += 1;
    this.#owners.delete(owner);
    this.#owners.set(owner, work);
    this.#forgetIdle(owner, work);
    this.#startNext();
  }

  #startNext(): void {
    for (;;) {
      const next = this.#next();
      if (!next) return;
      const [enter] = next.waiting;
      if (!enter) return;
      next.waiting.delete(enter);
      next.held += 1;
      this.#free -= 1;
      enter();
    }
  }

  /** Returns the owner whose work starts next, if any work may start. Of equal owners it is the first. */
  #next(): OwnersWork | undefined {
    if (this.#free === 0) return undefined;
    let next: OwnersWork | undefined;
    for (const one of this.#owners.values()) {
      if (one.waiting.size > 0 && (next === undefined || one.held < next.held)) next = one;
    }
    return next?.held === 0 || this.#free > this.#reserved ? next : undefined;
  }

  #forgetIdle(owner: string, { held, waiting }: OwnersWork): void {
    if (held === 0 && waiting.size === 0) this.#owners.delete(owner);
  }
}

/**
 * Limits how many pieces of work of several owners, such as accounts, run at the same time. A free place goes to the
 * waiting owner that has the fewest places.
 */
import { SharedSlots, type SlotLimits } from "./shared-slots.ts";

export interface FairLimits extends Omit<SlotLimits, "max"> {
  /** Places of all owners together. */
  places: number;
}

type Enter = (release: () => void) => void;

export class FairSemaphore<Owner = string> {
  readonly #places: number;
  readonly #slots: SharedSlots<Owner>;
  /**
   * For each owner with waiting work, the functions that start the work, the oldest first. The owner whose work ended
   * last is last.
   */
  readonly #waiting = new Map<Owner, Set<Enter>>();

  constructor({ places, ...shares }: FairLimits) {
    this.#places = places;
    this.#slots = new SharedSlots({ max: places, ...shares });
  }

  /** Places that nobody holds. */
  get free(): number {
    return this.#places - this.#slots.taken;
  }

  /** Places that are held. */
  get taken(): number {
    return this.#slots.taken;
  }

  /** Returns how much work of the owner waits for a place. */
  waitingOf(owner: Owner): number {
    return this.#waiting.get(owner)?.size ?? 0;
  }

  /** Returns the semaphore as one owner uses it. */
  of(owner: Owner): { take(signal: AbortSignal): Promise<() => void> } {
    return { take: (signal) => this.take(owner, signal) };
  }

  /**
   * Takes a place for the owner. Resolves with a function that gives the place back and may be called again. Rejects
   * with the signal's reason if the signal aborts first.
   */
  take(owner: Owner, signal?: AbortSignal): Promise<() => void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const waiting = this.#waiting.get(owner) ?? new Set<Enter>();
      this.#waiting.set(owner, waiting);
      const leave = () => {
        this.#remove(owner, enter);
        reject(signal?.reason);
      };
      const enter: Enter = (release) => {
        signal?.removeEventListener("abort", leave);
        resolve(release);
      };
      signal?.addEventListener("abort", leave, { once: true });
      waiting.add(enter);
      this.#startNext();
    });
  }

  /** Takes a place if the owner may have one now. Returns a function that gives it back and may be called again. */
  tryTake(owner: Owner): (() => void) | undefined {
    const release = this.#slots.tryTake(owner);
    if (!release) return undefined;
    return () => {
      release();
      this.#moveLast(owner);
      this.#startNext();
    };
  }

  /** Runs the work as soon as the owner has a place. Rejects with the error of the work, or the signal's reason. */
  async run<T>(owner: Owner, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const leave = await this.take(owner, signal);
    try {
      return await work();
    } finally {
      leave();
    }
  }

  #moveLast(owner: Owner): void {
    const waiting = this.#waiting.get(owner);
    if (!waiting) return;
    this.#waiting.delete(owner);
    this.#waiting.set(owner, waiting);
  }

  #remove(owner: Owner, enter: Enter): void {
    const waiting = this.#waiting.get(owner);
    waiting?.delete(enter);
    if (waiting?.size === 0) this.#waiting.delete(owner);
  }

  #startNext(): void {
    for (;;) {
      const owner = this.#next();
      if (owner === undefined) return;
      const [enter] = this.#waiting.get(owner) ?? [];
      const release = enter && this.tryTake(owner);
      // The owner with the fewest places has the most room. If it has none, no other owner has any.
      if (!release) return;
      this.#remove(owner, enter);
      enter(release);
    }
  }

  /** Returns the waiting owner with the fewest places. Of equal owners it is the first. */
  #next(): Owner | undefined {
    let next: Owner | undefined;
    let fewest = Number.POSITIVE_INFINITY;
    for (const owner of this.#waiting.keys()) {
      const taken = this.#slots.takenBy(owner);
      if (taken < fewest) [next, fewest] = [owner, taken];
    }
    return next;
  }
}

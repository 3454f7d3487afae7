/** Gives out the slots of a limit that several owners share. Work waits while its owner may have no slot. */
import { SharedSlots, type SlotLimits } from "../runtime/lib/shared-slots.ts";

interface Waiting<Owner> {
  owner: Owner;
  start(release: () => void): void;
}

export class WaitingSlots<Owner> {
  readonly #slots: SharedSlots<Owner>;
  #waiting: Waiting<Owner>[] = [];

  constructor(limits: SlotLimits) {
    this.#slots = new SharedSlots(limits);
  }

  /** Slots that are taken now. */
  get running(): number {
    return this.#slots.taken;
  }

  /** Takes a slot if this owner may have one now. Returns a function that releases the slot. */
  tryTake(owner: Owner): (() => void) | undefined {
    const release = this.#slots.tryTake(owner);
    if (!release) return undefined;
    return () => {
      release();
      this.#startNext();
    };
  }

  /** Waits for a slot. Resolves with a function that releases the slot. Rejects with the signal's reason. */
  take(owner: Owner, signal: AbortSignal): Promise<() => void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const abort = () => {
        this.#waiting = this.#waiting.filter((other) => other !== waiting);
        reject(signal.reason);
      };
      const waiting: Waiting<Owner> = {
        owner,
        start: (release) => {
          signal.removeEventListener("abort", abort);
          resolve(release);
        },
      };
      signal.addEventListener("abort", abort, { once: true });
      this.#waiting.push(waiting);
      this.#startNext();
    });
  }

  #startNext(): void {
    for (const waiting of this.#waiting) {
      const release = this.tryTake(waiting.owner);
      if (!release) continue;
      this.#waiting = this.#waiting.filter((other) => other !== waiting);
      waiting.start(release);
    }
  }
}

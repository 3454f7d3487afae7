/**
 * Limits the name lookups that have not ended, in all and for each owner. The system's resolver cannot cancel a lookup:
 * it keeps a thread until its name servers answer or time out, long after the caller has stopped waiting.
 */
import { SharedSlots } from "../runtime/lib/shared-slots.ts";

/** The account whose work needs a name, or the object that makes the connections if no account is known. */
export type LookupOwner = string | object;

/** Share of libuv's lookup threads that lookups of the egress guard may use. NATS and others resolve names as well. */
const EGRESS_LOOKUPS_SHARE = 0.75;
/** The threads of libuv if UV_THREADPOOL_SIZE is not set. `npm start` sets 64. */
const THREADS = 4;
/**
 * One owner's share of the lookups. The same share is kept free: all of it for an owner that has no lookup, and less
 * of it for an owner that has some. Without both, one page with names whose name servers are silent would stop the lookups of all
 * pages, crawls and webhooks of the process.
 */
const EGRESS_LOOKUPS_OWNER_SHARE = 1 / 3;

/** Returns the limit for the lookups of a process with this value of UV_THREADPOOL_SIZE. */
export function lookupsMax(threadPoolSize: string | undefined): number {
  const threads = Number(threadPoolSize) || THREADS;
  // libuv lets lookups use half of its threads, rounded up.
  return Math.max(2, Math.floor(Math.ceil(threads / 2) * EGRESS_LOOKUPS_SHARE));
}

/** Returns the limit for the lookups of one owner, when all owners together have `max`. */
export function lookupsOfOwnerMax(max: number): number {
  return Math.max(1, Math.floor(max * EGRESS_LOOKUPS_OWNER_SHARE));
}

interface Waiting {
  owner: LookupOwner;
  start(release: () => void): void;
}

export class LookupSlots {
  readonly #slots: SharedSlots<LookupOwner>;
  #waiting: Waiting[] = [];

  constructor(max: number) {
    const keptFree = Math.floor(max * EGRESS_LOOKUPS_OWNER_SHARE);
    this.#slots = new SharedSlots({ max, perOwner: lookupsOfOwnerMax(max), keptFree });
  }

  /** Lookups that have not ended. */
  get running(): number {
    return this.#slots.taken;
  }

  /** Takes a slot if this owner may have one now. Returns a function that releases the slot. */
  tryTake(owner: LookupOwner): (() => void) | undefined {
    const release = this.#slots.tryTake(owner);
    if (!release) return undefined;
    return () => {
      release();
      this.#startNext();
    };
  }

  /** Waits for a slot. Resolves with a function that releases the slot. Rejects with the signal's reason. */
  take(owner: LookupOwner, signal: AbortSignal): Promise<() => void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const abort = () => {
        this.#waiting = this.#waiting.filter((other) => other !== waiting);
        reject(signal.reason);
      };
      const waiting: Waiting = {
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

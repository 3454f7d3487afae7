/**
 * Limits the name lookups that have not ended, in all and for each owner. The system's resolver cannot cancel a lookup:
 * it keeps a thread until its name servers answer or time out, long after the caller has stopped waiting.
 */
import { FairSemaphore } from "../runtime/lib/fair-semaphore.ts";

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

export class LookupSlots extends FairSemaphore<LookupOwner> {
  constructor(max: number) {
    const keptFree = Math.floor(max * EGRESS_LOOKUPS_OWNER_SHARE);
    super({ places: max, perOwner: lookupsOfOwnerMax(max), keptFree });
  }
}

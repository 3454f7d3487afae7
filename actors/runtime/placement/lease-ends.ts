/**
 * Finds leases that have ended and announces their end to all hosts. Each host watches the lease of the next member
 * in the order of names. So only one other host reads each renewal, however many hosts there are. If that lease has
 * ended too, the host watches the lease behind it.
 */
import type { Logger } from "pino";
import { LEASE_TTL_MS } from "../../../schemas/limits.ts";
import { WriteRefused, writeAtomically } from "../bus/atomic-batch.ts";
import type { Bus } from "../bus/bus.ts";
import type { Clock } from "../lib/clock.ts";
import type { StateStore } from "../state/state-store.ts";
import { endLease, endOfMember, LEASE_FORM, LEASE_RENEW_MS, Lease } from "./host-lease.ts";
import type { Members } from "./members.ts";

/**
 * A stored lease that is not renewed for this many of its lifetimes is a ghost. A nats-server that was killed may
 * restore expired messages and then never expire them (seen with 2.15.2).
 */
export const LEASE_UNSEEN_LIVES_MAX = 2;
/** A lease is late after half of its life. It is then read often, so that its end is found at once. */
const LATE_SHARE = 1 / 2;
const LATE_LOOK_MS = 50;
/**
 * Limits the late or unknown leases that a host reads in one round, because more reads would delay the next round.
 */
const LOOKS_MAX = 32;

interface LeaseEndsParts {
  bus: Bus;
  /** The bucket that holds the leases. */
  store: StateStore;
  clock: Clock;
  logger: Logger;
  members: Pick<Members, "after" | "has">;
}

interface Look {
  sequence: number;
  /** Monotonic time when this sequence was first read. */
  seenAt: number;
  /** True if this host has read an earlier sequence of the same lease. */
  isRenewal: boolean;
}

export class LeaseEnds {
  readonly #parts: LeaseEndsParts;
  readonly #looks = new Map<string, Look>();

  constructor(parts: LeaseEndsParts) {
    this.#parts = parts;
  }

  /** Watches the leases of the members behind `own()` until the signal aborts. */
  async watch(own: () => string, signal: AbortSignal): Promise<void> {
    const { clock, logger } = this.#parts;
    while (!signal.aborted) {
      let isLate = false;
      try {
        isLate = await this.#lookAfter(own());
      } catch (error) {
        logger.debug({ err: error }, "lease of the next host not read, will try again");
      }
      await clock.wait(isLate ? LATE_LOOK_MS : LEASE_RENEW_MS, signal);
    }
  }

  /**
   * Asks the leader whether the lease of a host has ended. A host of the first release may live without being a
   * member. It is then announced as a member, so that another host watches its lease.
   */
  async hasEnded(host: string): Promise<boolean> {
    const lease = await this.#read(host);
    if (lease && !this.#parts.members.has(host)) await this.#announce(host, lease);
    return lease === undefined;
  }

  async #announce(host: string, lease: Lease): Promise<void> {
    const { bus, store } = this.#parts;
    const subject = store.subjects.member(host);
    try {
      // Does not replace a member that the host itself has written, because this content may be older.
      await writeAtomically(bus, [
        { subject, payload: JSON.stringify(lease), expect: { sequence: 0 } },
      ]);
    } catch (error) {
      if (!(error instanceof WriteRefused && error.conflict)) throw error;
    }
  }

  /** Reads the leases of the next members. Returns true while one of them is late. */
  async #lookAfter(own: string): Promise<boolean> {
    const { bus, store, clock, members } = this.#parts;
    let looks = 0;
    let isLate = false;
    for (const host of this.#looks.keys()) if (!members.has(host)) this.#looks.delete(host);
    for (const host of members.after(own)) {
      if (looks === LOOKS_MAX) break;
      // Another host has announced the end of this member meanwhile.
      if (!members.has(host)) continue;
      const lease = await this.#read(host);
      if (lease === undefined) {
        await writeAtomically(bus, [endOfMember(store, host)]);
        continue;
      }
      looks += 1;
      const look = this.#looks.get(host);
      const lateMs = LATE_SHARE * ttlOf(lease);
      const isSeenLate = !look || clock.monotonic() - look.seenAt > lateMs;
      if (isSeenLate) isLate = true;
      // Stops only at a lease that was renewed between two reads, because nobody may have renewed a lease for hours
      // before the first read. A host of the first release watches no other lease, so this host watches the next
      // lease too.
      else if (look.isRenewal && lease.form === LEASE_FORM) break;
    }
    return isLate;
  }

  /** Reads a lease from the leader, and ends the lease if it is a ghost. Returns undefined if the lease has ended. */
  async #read(host: string): Promise<Lease | undefined> {
    const { store, clock } = this.#parts;
    let stored: { sequence: number; text: string | undefined };
    try {
      stored = await store.read(store.subjects.lease(host));
    } catch (error) {
      // Nobody could renew a lease while the store was unreachable, so earlier reads prove nothing.
      this.#looks.clear();
      throw error;
    }
    const { sequence, text } = stored;
    const before = this.#looks.get(host);
    const now = clock.monotonic();
    if (text !== undefined && before?.sequence !== sequence) {
      this.#looks.set(host, { sequence, seenAt: now, isRenewal: before !== undefined });
    }
    const lease = text === undefined ? undefined : Lease.parse(JSON.parse(text));
    if (lease) {
      const unseenMs = before?.sequence === sequence ? now - before.seenAt : 0;
      const isGhost = unseenMs > LEASE_UNSEEN_LIVES_MAX * ttlOf(lease);
      if (!isGhost || !(await this.#end(host, sequence))) return lease;
    }
    this.#looks.delete(host);
    return undefined;
  }

  /** Ends a lease. Returns false if its host has renewed it since. */
  async #end(host: string, sequence: number): Promise<boolean> {
    try {
      await endLease(this.#parts, host, sequence);
      return true;
    } catch (error) {
      if (error instanceof WriteRefused && error.conflict) return false;
      throw error;
    }
  }
}

const ttlOf = ({ ttlMs = LEASE_TTL_MS }: Lease) => ttlMs;

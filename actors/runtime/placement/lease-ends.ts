/**
 * Finds leases that have ended and announces them to all hosts. Each host looks after the lease of the next member in
 * the order of names, so one renewal is read by one other host, however many there are. If that lease has ended too, the
 * host looks after the lease behind it.
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
 * A stored lease that nobody renews for this many of its lives is a ghost: a nats-server that was killed may bring back
 * expired messages and never expire them again (seen with 2.15.2).
 */
export const LEASE_UNSEEN_LIVES_MAX = 2;
/** A lease is late after half of its life. It is then read often, so that its end is found at once. */
const LATE_SHARE = 1 / 2;
const LATE_LOOK_MS = 50;
/** Leases that are late or unknown and are read in one round: more would delay the first of them. */
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
  /** True if it follows another sequence that this host has read. */
  isRenewal: boolean;
}

export class LeaseEnds {
  readonly #parts: LeaseEndsParts;
  readonly #looks = new Map<string, Look>();

  constructor(parts: LeaseEndsParts) {
    this.#parts = parts;
  }

  /** Looks after the members behind `own()` until the signal aborts. */
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
   * Asks the leader whether the lease of a host has ended. A host that lives and is no member, since it is of the first
   * release, becomes one, so that another host looks after its lease.
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
      // Never over the member that the host has written itself: this content may be older.
      await writeAtomically(bus, [
        { subject, payload: JSON.stringify(lease), expect: { sequence: 0 } },
      ]);
    } catch (error) {
      if (!(error instanceof WriteRefused && error.conflict)) throw error;
    }
  }

  /** True while the lease of the next member is late. */
  async #lookAfter(own: string): Promise<boolean> {
    const { bus, store, clock, members } = this.#parts;
    let looks = 0;
    let isLate = false;
    for (const host of this.#looks.keys()) if (!members.has(host)) this.#looks.delete(host);
    for (const host of members.after(own)) {
      if (looks === LOOKS_MAX) break;
      // Another host has announced its end meanwhile.
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
      // The first look proves nothing: nobody may have renewed this lease for hours. A host of the first release looks
      // after nobody, so the next lease is this host's task as well.
      else if (look.isRenewal && lease.form === LEASE_FORM) break;
    }
    return isLate;
  }

  /** Reads a lease from the leader, and ends it if it is a ghost; undefined where it has ended. */
  async #read(host: string): Promise<Lease | undefined> {
    const { store, clock } = this.#parts;
    let stored: { sequence: number; text: string | undefined };
    try {
      stored = await store.read(store.subjects.lease(host));
    } catch (error) {
      // Nobody could renew a lease meanwhile.
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

  /** False where the lease was renewed since. */
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

/**
 * The hosts whose leases are renewed, as far as this host sees. A stored lease that is not renewed does not count: a
 * nats- server that was killed may bring back expired messages and never expire them again (seen with 2.15.2).
 */
import { LEASE_TTL_MS } from "../../../schemas/limits.ts";
import type { Clock } from "../lib/clock.ts";
import { LEASE_FORM, type Lease } from "./host-lease.ts";

/** A stored lease without a renewal for this long is a ghost: two lives of a lease. */
export const LEASE_UNSEEN_MS_MAX = 2 * LEASE_TTL_MS;

interface Sighting extends Lease {
  sequence: number;
  /** Monotonic time when this sequence was first seen. */
  seenAt: number;
}

export class LivingHosts {
  readonly #clock: Clock;
  readonly #hosts = new Map<string, Sighting>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The lease was read at this sequence; each renewal has another. */
  see(host: string, sequence: number, lease: Lease): void {
    const known = this.#hosts.get(host);
    const seenAt = known?.sequence === sequence ? known.seenAt : this.#clock.monotonic();
    this.#hosts.set(host, { ...lease, sequence, seenAt });
  }

  forget(host: string): void {
    this.#hosts.delete(host);
  }

  clear(): void {
    this.#hosts.clear();
  }

  /** False also for a lease that was not renewed for longer than any lease lives. */
  isAlive(host: string): boolean {
    const known = this.#hosts.get(host);
    return known !== undefined && this.#clock.monotonic() - known.seenAt <= LEASE_UNSEEN_MS_MAX;
  }

  /**
   * The next host at the same server in the order of names, and behind the last the first; with its lease as it was
   * seen last.
   */
  nextAfter(host: string, server: string): { host: string; sequence: number } | undefined {
    const others = [...this.#hosts].filter(
      ([one, lease]) => one !== host && lease.server === server && this.isAlive(one),
    );
    others.sort(([one], [other]) => (one < other ? -1 : 1));
    const [next, lease] = others.find(([one]) => one > host) ?? others[0] ?? [];
    return next === undefined || !lease ? undefined : { host: next, sequence: lease.sequence };
  }

  /** Returns the hosts that take shards. Hosts of the first release cannot take a shard from a host of this release. */
  staying(): string[] {
    return [...this.#hosts]
      .filter(([host, { leaving, form }]) => !leaving && form === LEASE_FORM && this.isAlive(host))
      .map(([host]) => host);
  }

  /** True when the lease at this sequence has surely ended, whatever is stored. */
  hasEnded(host: string, sequence: number): boolean {
    return this.#hosts.get(host)?.sequence === sequence && !this.isAlive(host);
  }
}

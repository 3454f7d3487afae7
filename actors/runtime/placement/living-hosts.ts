/**
 * The hosts whose leases are being renewed, as far as this one sees. A lease that is stored and not renewed is nobody's:
 * a nats-server that was killed may bring back expired messages, and never expire them again (seen with 2.15.2).
 */
import { LEASE_UNSEEN_MS_MAX } from "../../../schemas/limits.ts";
import type { Clock } from "../lib/clock.ts";
import type { Lease } from "./host-lease.ts";

interface Sighting extends Lease {
  sequence: number;
  /** Monotonic time of the first sight of this sequence. */
  seenAt: number;
}

export class LivingHosts {
  readonly #clock: Clock;
  readonly #hosts = new Map<string, Sighting>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The lease was read at this sequence. Each renewal has another. */
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

  /** The next of those at a server in the order of their names, which begins anew behind the last; and its lease as it was seen last. */
  nextAfter(host: string, server: string): { host: string; sequence: number } | undefined {
    const others = [...this.#hosts].filter(
      ([one, lease]) => one !== host && lease.server === server && this.isAlive(one),
    );
    others.sort(([one], [other]) => (one < other ? -1 : 1));
    const [next, lease] = others.find(([one]) => one > host) ?? others[0] ?? [];
    return next === undefined || !lease ? undefined : { host: next, sequence: lease.sequence };
  }

  /** Those that take shards. */
  staying(): string[] {
    return [...this.#hosts]
      .filter(([host, { leaving }]) => !leaving && this.isAlive(host))
      .map(([host]) => host);
  }

  /** True when the lease at this sequence has surely ended, whatever is stored. */
  hasEnded(host: string, sequence: number): boolean {
    return this.#hosts.get(host)?.sequence === sequence && !this.isAlive(host);
  }
}

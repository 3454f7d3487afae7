/**
 * The hosts that have joined, according to the news that this host has received. Hosts announce that they join, leave
 * and end, but not that they renew their leases. So a member may already be dead: only the store knows whether a
 * lease has ended.
 */
import { fnv1a32 } from "../../../schemas/subjects.ts";
import { LEASE_FORM, type Lease } from "./host-lease.ts";
import { PreferredHosts } from "./rendezvous.ts";

export class Members {
  readonly #hosts = new Map<string, Lease>();
  /** All members in the order of their names; undefined until it is needed. */
  #inOrder: string[] | undefined;
  readonly #shards: number;
  #preferred: PreferredHosts;

  constructor(shards: number) {
    this.#shards = shards;
    this.#preferred = new PreferredHosts(shards);
  }

  add(host: string, lease: Lease): void {
    this.#hosts.set(host, lease);
    this.#inOrder = undefined;
    // Hosts of the first release cannot take a shard from a host of this release.
    if (!lease.leaving && lease.form === LEASE_FORM) this.#preferred.add(host);
    else this.#preferred.remove(host);
  }

  remove(host: string): void {
    this.#hosts.delete(host);
    this.#inOrder = undefined;
    this.#preferred.remove(host);
  }

  /** Removes all members except `hosts` and this host itself. Returns the removed members. */
  retain(hosts: ReadonlySet<string>, own: string): string[] {
    const others = [...this.#hosts.keys()].filter((host) => host !== own && !hosts.has(host));
    for (const host of others) this.remove(host);
    return others;
  }

  clear(): void {
    this.#hosts.clear();
    this.#inOrder = undefined;
    this.#preferred = new PreferredHosts(this.#shards);
  }

  has(host: string): boolean {
    return this.#hosts.has(host);
  }

  /** The member that should own the shard. */
  preferredFor(shard: number): string | undefined {
    return this.#preferred.of(shard);
  }

  /**
   * Returns the member that does this piece of work. Any member that does not leave could do it; all hosts choose the
   * same one.
   */
  chosenFor(work: string): string | undefined {
    return this.#preferred.choose(fnv1a32(work));
  }

  /**
   * Returns all other members in the order of names. Begins behind this host, and continues with the first name after
   * the last.
   */
  after(host: string): string[] {
    this.#inOrder ??= [...this.#hosts.keys()].sort();
    const others = this.#inOrder.filter((one) => one !== host);
    const next = others.findIndex((one) => one > host);
    return next <= 0 ? others : [...others.slice(next), ...others.slice(0, next)];
  }
}

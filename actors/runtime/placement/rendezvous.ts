/**
 * Chooses which living host should own a shard. Every host computes the same result, and few shards move when a host
 * joins or leaves.
 */
import { fnv1a32 } from "../../../schemas/subjects.ts";

/**
 * The preferred host of each shard, kept up to date while hosts come and go: the host with the highest weight for the
 * shard (rendezvous hashing), or undefined where there is no host.
 */
export class PreferredHosts {
  readonly #hashes = new Map<string, number>();
  readonly #preferred: (Preferred | undefined)[];

  constructor(shards: number) {
    this.#preferred = Array.from({ length: shards }, () => undefined);
  }

  of(shard: number): string | undefined {
    return this.#preferred[shard]?.host;
  }

  /** The preferred host for a number that need not be a shard. */
  choose(number: number): string | undefined {
    return heaviest(number, this.#hashes)?.host;
  }

  /** Adds a host: compares it with the preferred host of each shard. */
  add(host: string): void {
    if (this.#hashes.has(host)) return;
    const hash = fnv1a32(host);
    this.#hashes.set(host, hash);
    for (const [shard, before] of this.#preferred.entries()) {
      this.#preferred[shard] = heavier(before, { host, weight: weightOf(shard, hash) });
    }
  }

  /** Removes a host: chooses again only for the shards that preferred it. */
  remove(host: string): void {
    if (!this.#hashes.delete(host)) return;
    for (const [shard, before] of this.#preferred.entries()) {
      if (before?.host === host) this.#preferred[shard] = heaviest(shard, this.#hashes);
    }
  }
}

interface Preferred {
  readonly host: string;
  readonly weight: number;
}

function heaviest(shard: number, hashes: Iterable<[string, number]>): Preferred | undefined {
  let best: Preferred | undefined;
  for (const [host, hash] of hashes) best = heavier(best, { host, weight: weightOf(shard, hash) });
  return best;
}

function heavier(one: Preferred | undefined, other: Preferred): Preferred {
  if (one === undefined || other.weight > one.weight) return other;
  return other.weight === one.weight && other.host > one.host ? other : one;
}

const weightOf = (shard: number, hash: number) => scramble(hash ^ scramble(shard + 1));

// FNV alone spreads similar names badly: the finalizer of MurmurHash3 (public domain) mixes all 32 bits.
function scramble(value: number): number {
  let mixed = value >>> 0;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

/**
 * Chooses which living host should own a shard: every host comes to the same answer, and few shards move when one
 * joins or leaves.
 */
import { fnv1a32 } from "../../../schemas/subjects.ts";

/** The host with the highest weight for the shard (rendezvous hashing), or undefined where there is none. */
export function preferredHost(shard: number, hosts: Iterable<string>): string | undefined {
  let best: string | undefined;
  let bestWeight = -1;
  for (const host of hosts) {
    const weight = scramble(fnv1a32(host) ^ scramble(shard + 1));
    if (weight > bestWeight || (weight === bestWeight && best !== undefined && host > best)) {
      best = host;
      bestWeight = weight;
    }
  }
  return best;
}

// FNV alone spreads similar names badly: the finalizer of MurmurHash3 (public domain) mixes all 32 bits.
function scramble(value: number): number {
  let mixed = value >>> 0;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

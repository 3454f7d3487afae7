/** Reads how long the leases of the hosts last: on a busy machine, a lease is longer for a while. */
import type { Bus } from "../../actors/runtime/bus/bus.ts";
import { Lease } from "../../actors/runtime/placement/host-lease.ts";
import { LEASE_TTL_MS } from "../../schemas/limits.ts";
import { stateBucket, stateSubjects } from "../../schemas/subjects.ts";

/** Returns the lifetime in ms of the longest stored lease, or LEASE_TTL_MS if there is none. */
export async function longestLeaseMs(bus: Bus): Promise<number> {
  const { stream, leases } = stateSubjects(stateBucket(0));
  const subjects = await bus.subjectsOf(stream, leases);
  const stored = await Promise.all(subjects.map((subject) => bus.readLast(stream, subject)));
  // A lease that has ended leaves an empty message.
  const texts = stored.flatMap((message) => message?.string() || []);
  return texts.reduce((longest, text) => {
    const { ttlMs = LEASE_TTL_MS } = Lease.parse(JSON.parse(text));
    return Math.max(longest, ttlMs);
  }, LEASE_TTL_MS);
}

/** Reads for operators which host owns which shard. */
import type { StoredMsg } from "@nats-io/jetstream";
import { type StateSubjects, stateBucket, stateSubjects } from "../../../schemas/subjects.ts";
import type { Bus } from "../bus/bus.ts";
import { Epoch } from "./epoch.ts";
import { Lease } from "./host-lease.ts";

export interface OwningHost {
  id: string;
  /** `gone`: its lease has ended, and the other hosts take its shards. */
  lease: "held" | "leaving" | "gone";
  /** Undefined where the lease is gone. */
  renewedAt: Date | undefined;
  shards: number[];
}

interface ShardOwners {
  hosts: OwningHost[];
  /** Shards that were given back or never taken. */
  free: number[];
}

export async function readShardOwners(bus: Bus): Promise<ShardOwners> {
  const buckets = await stateBuckets(bus);
  const hosts = new Map<string, OwningHost>();
  const owners = new Map<number, string>();
  for (const [index, subjects] of buckets.entries()) {
    for (const stored of index === 0 ? await lastOf(bus, subjects, subjects.leases) : []) {
      const id = subjects.lastToken(stored.subject);
      const lease = Lease.parse(stored.json()).leaving ? "leaving" : "held";
      hosts.set(id, { id, lease, renewedAt: stored.time, shards: [] });
    }
    for (const stored of await lastOf(bus, subjects, subjects.epochs)) {
      const { owner } = Epoch.parse(stored.json());
      if (owner !== null) owners.set(Number(subjects.lastToken(stored.subject)), owner);
    }
  }
  const free: number[] = [];
  for (let shard = 0; shard < bus.layout.shards; shard++) {
    const id = owners.get(shard);
    if (id === undefined) {
      free.push(shard);
      continue;
    }
    const host = hosts.get(id) ?? { id, lease: "gone", renewedAt: undefined, shards: [] };
    host.shards.push(shard);
    hosts.set(id, host);
  }
  return { hosts: [...hosts.values()].sort((a, b) => a.id.localeCompare(b.id)), free };
}

/** The newest values under a filter, without those that were removed. */
async function lastOf(bus: Bus, { stream }: StateSubjects, filter: string): Promise<StoredMsg[]> {
  // Reads the keys one by one, because the user `operator` may read only these keys of the bucket.
  const found = await Promise.all(
    (await bus.subjectsOf(stream, filter)).map((subject) =>
      bus.jetstream.direct.getMessage(stream, { last_by_subj: subject }),
    ),
  );
  const values: StoredMsg[] = [];
  for (const stored of found) {
    if (!stored) continue;
    const { header } = stored;
    if (!header.has("KV-Operation") && !header.has("Nats-Marker-Reason")) values.push(stored);
  }
  return values;
}

async function stateBuckets(bus: Bus): Promise<StateSubjects[]> {
  const streams = new Set<string>();
  for await (const name of bus.jetstream.streams.names()) streams.add(name);
  const buckets: StateSubjects[] = [];
  for (;;) {
    const subjects = stateSubjects(stateBucket(buckets.length));
    if (!streams.has(subjects.stream)) return buckets;
    buckets.push(subjects);
  }
}

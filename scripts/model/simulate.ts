/** Computes what a large installation costs, from the platform's own placement and from measured costs. */
import { LEASE_RENEW_MS } from "../../actors/runtime/placement/host-lease.ts";
import { PreferredHosts } from "../../actors/runtime/placement/rendezvous.ts";

export interface Scene {
  hosts: number;
  hostsPerRack: number;
  shards: number;
  actorsPerHost: number;
  changesPerSecond: number;
}

/** Costs measured by `npm run bench`, on two cores that servers, hosts and load share. */
export interface Costs {
  /** Durable changes a second that one state stream stores with its journal. */
  changesPerStream: number;
  /** Messages a second that the server receives and sends for an idle host, and for the readers of a shard. */
  messagesPerHost: number;
  messagesPerShard: number;
  /** Processor time of hosts and servers for the same, in parts of a core. */
  coresPerHost: number;
  coresPerShard: number;
}

export interface Findings {
  /** Shards of the busiest host, over a fair share. */
  busiest: number;
  idleHosts: number;
  idleMessagesPerSecond: number;
  idleCores: number;
  /** The same with a watch of each lease by each host. */
  messagesIfAllWatch: number;
  /** Time of one host to choose anew when one joins, and when a rack dies. */
  joinMs: number;
  rackMs: number;
  rack: {
    shards: number;
    actors: number;
    /** Longest run of dead members in the order of names: one host finds all of them. */
    longestRun: number;
    /** Writes of epochs, and their deliveries to all hosts. */
    epochWrites: number;
    epochMessages: number;
    /** Shards that the busiest taker takes. */
    mostTaken: number;
  };
  stateStreams: number;
}

export function simulate(scene: Scene, costs: Costs): Findings {
  const { shards, hostsPerRack } = scene;
  const names = Array.from({ length: scene.hosts }, (_, index) => nameOf(index));
  const preferred = new PreferredHosts(shards);
  for (const name of names.slice(1)) preferred.add(name);
  const joinMs = timed(() => preferred.add(names[0] ?? ""));
  const before = placementOf(preferred, shards);
  const owned = countBy(before);
  const busiest = Math.max(...owned.values()) / (shards / scene.hosts);

  // Hosts of one rack started one after the other, so their names have nothing in common.
  const dead = new Set(names.slice(0, hostsPerRack));
  const rackMs = timed(() => {
    for (const name of dead) preferred.remove(name);
  });
  const after = placementOf(preferred, shards);
  const moved = before.flatMap((host, shard) => (host === after[shard] ? [] : [after[shard]]));
  const mostTaken = Math.max(0, ...countBy(moved).values());
  const epochWrites = 2 * moved.length;
  return {
    busiest,
    idleHosts: scene.hosts - owned.size,
    idleMessagesPerSecond: scene.hosts * costs.messagesPerHost + shards * costs.messagesPerShard,
    idleCores: scene.hosts * costs.coresPerHost + shards * costs.coresPerShard,
    messagesIfAllWatch: (1_000 / LEASE_RENEW_MS) * scene.hosts ** 2,
    ...{ joinMs, rackMs },
    rack: {
      shards: moved.length,
      actors: (moved.length / shards) * scene.hosts * scene.actorsPerHost,
      longestRun: longestRun(names.toSorted(), dead),
      epochWrites,
      epochMessages: epochWrites * (scene.hosts - dead.size),
      mostTaken,
    },
    stateStreams: Math.ceil(scene.changesPerSecond / costs.changesPerStream),
  };
}

/** Returns a name that looks random, as those of real hosts do: hosts of one rack are no neighbours in the order of names. */
function nameOf(index: number): string {
  const spread = Math.imul(index + 1, 0x9e3779b1);
  // Without this step the names would be spread more evenly than random ones.
  const mixed = Math.imul(spread ^ (spread >>> 15), 0x85ebca6b);
  return `node-${((mixed ^ (mixed >>> 13)) >>> 0).toString(16).padStart(8, "0")}`;
}

const placementOf = (preferred: PreferredHosts, shards: number) =>
  Array.from({ length: shards }, (_, shard) => preferred.of(shard) ?? "");

function countBy(names: readonly (string | undefined)[]): Map<string | undefined, number> {
  const counts = new Map<string | undefined, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}

function longestRun(names: readonly string[], dead: ReadonlySet<string>): number {
  let longest = 0;
  let run = 0;
  // Twice round, because the last name is followed by the first.
  for (const name of [...names, ...names]) {
    run = dead.has(name) ? run + 1 : 0;
    longest = Math.max(longest, run);
  }
  return longest;
}

function timed(work: () => void): number {
  const before = performance.now();
  work();
  return performance.now() - before;
}

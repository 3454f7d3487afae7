/** Computes the costs of a large installation from the platform's own placement code and from measured costs. */
import { LEASE_RENEW_MS } from "../../actors/runtime/placement/host-lease.ts";
import { PreferredHosts } from "../../actors/runtime/placement/rendezvous.ts";

export interface Scene {
  hosts: number;
  hostsPerRack: number;
  shards: number;
  actorsPerHost: number;
  changesPerSecond: number;
  /** What goes through other streams than those of the state. Mail within a host goes through none. */
  mailPerSecond: number;
  tasksPerSecond: number;
  /** Commits of agents' databases. */
  agentCommitsPerSecond: number;
  /** Stored bytes, and the bytes that one server should have of a store. */
  agentBytes: number;
  packBytes: number;
  serverBytes: number;
}

/** Costs measured by `npm run bench` on two processor cores, which servers, hosts and the load share. */
export interface Costs {
  /** Number of durable changes per second that one state stream with its journal can store. */
  changesPerStream: number;
  /** The same for mail in batches, for tasks that workers take, and for commits of agents in batches. */
  mailPerStream: number;
  tasksPerStream: number;
  agentCommitsPerStream: number;
  /** Messages per second that the server receives and sends for an idle host and for the readers of a shard. */
  messagesPerHost: number;
  messagesPerShard: number;
  /** Processor time of hosts and servers for these messages, as a fraction of one core. */
  coresPerHost: number;
  coresPerShard: number;
}

export interface Findings {
  /** Number of shards of the busiest host, divided by the average number. */
  busiest: number;
  idleHosts: number;
  idleMessagesPerSecond: number;
  idleCores: number;
  /** Messages per second if each host watched the lease of every other host. */
  messagesIfAllWatch: number;
  /** Time that one host needs to choose its shards again when a host joins, and when a rack fails. */
  joinMs: number;
  rackMs: number;
  rack: {
    shards: number;
    actors: number;
    /** Longest run of dead members in the order of names. One host detects all of them. */
    longestRun: number;
    /** Number of epoch writes, and of their deliveries to all hosts. */
    epochWrites: number;
    epochMessages: number;
    /** Highest number of shards that one host takes over. */
    mostTaken: number;
  };
  stateStreams: number;
  mailStreams: number;
  taskStreams: number;
  agentStreams: number;
  packStreams: number;
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

  // The dead hosts are all hosts of one rack. Their names are random, so they are not neighbours in the order of
  // names.
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
    mailStreams: Math.ceil(scene.mailPerSecond / costs.mailPerStream),
    taskStreams: Math.ceil(scene.tasksPerSecond / costs.tasksPerStream),
    agentStreams: Math.max(
      Math.ceil(scene.agentCommitsPerSecond / costs.agentCommitsPerStream),
      Math.ceil(scene.agentBytes / scene.serverBytes),
    ),
    packStreams: Math.ceil(scene.packBytes / scene.serverBytes),
  };
}

/**
 * Returns a pseudo-random name, as real hosts have. Hosts of one rack are therefore not neighbours in the order of
 * names.
 */
function nameOf(index: number): string {
  const spread = Math.imul(index + 1, 0x9e3779b1);
  // Without this step, the names would be more evenly distributed than random names.
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
  // Goes through the names twice, because the order is a ring: the first name follows the last one.
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

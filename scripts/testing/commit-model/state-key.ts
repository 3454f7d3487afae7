/**
 * Identifies the states of the model. The two shards are alike, so states that differ only in the numbers of the
 * shards have the same key, and a search explores one of them.
 */
import type { CheckpointTry, Flight, HostState, ModelState, ShardNumber } from "./state.ts";

export function keyOf(state: ModelState): string {
  const [first, second] = [partOf(state, 0), partOf(state, 1)];
  if (first < second) return `${first}${second}${restOf(state)}`;
  const other = restOf(withSwappedShards(state));
  if (first > second) return `${second}${first}${other}`;
  const own = restOf(state);
  return `${first}${second}${own < other ? own : other}`;
}

/** Returns everything that the state holds for one shard. */
function partOf(
  { epochs, keys, acknowledged, answered, seen, hosts }: ModelState,
  at: ShardNumber,
) {
  const ofHosts = hosts.map(({ shards, pending, writing }) => [
    shards[at],
    pending[at],
    writing[at],
  ]);
  return JSON.stringify([epochs[at], keys[at], acknowledged[at], answered[at], seen[at], ofHosts]);
}

/** Returns everything else. */
function restOf(state: ModelState): string {
  const { epochs: _, keys: _k, acknowledged: _a, answered: _n, seen: _s, hosts, ...rest } = state;
  return JSON.stringify([rest, hosts.map(restOfHost)]);
}

function restOfHost({ shards: _, pending: _p, writing: _w, ...rest }: HostState) {
  return rest;
}

/** Swaps the numbers of the shards in everything that restOf() returns. */
function withSwappedShards(state: ModelState): ModelState {
  const journals = Object.entries(state.journals).map(([name, { count, messages }]) => {
    const swapped = messages.map((one) => ({ ...one, commit: one.commit && ofOther(one.commit) }));
    return [name, { count, messages: swapped }] as const;
  });
  const [one, other] = state.hosts;
  return {
    ...state,
    journals: Object.fromEntries(journals),
    hosts: [swappedHost(one), swappedHost(other)],
    inFlight: sorted(state.inFlight.map(swappedFlight)),
  };
}

const swappedHost = (host: HostState): HostState => ({
  ...host,
  commit: host.commit && ofOther(host.commit),
  checkpoint: host.checkpoint && swappedCheckpoint(host.checkpoint),
});

const swappedFlight = (flight: Flight): Flight =>
  "commit" in flight
    ? { ...flight, commit: ofOther(flight.commit) }
    : { ...flight, checkpoint: swappedCheckpoint(flight.checkpoint) };

const ofOther = <C extends { shard: ShardNumber }>(commit: C): C => ({
  ...commit,
  shard: commit.shard === 0 ? 1 : 0,
});

function swappedCheckpoint(checkpoint: CheckpointTry): CheckpointTry {
  const [first, second] = checkpoint.values;
  return { ...checkpoint, values: [second, first] };
}

/** Sorts writes in flight, whose order has no meaning. */
function sorted(flights: readonly Flight[]): Flight[] {
  const texts = new Map(flights.map((flight) => [flight, JSON.stringify(flight)]));
  const textOf = (flight: Flight) => texts.get(flight) ?? "";
  return flights.toSorted((one, other) => (textOf(one) < textOf(other) ? -1 : 1));
}

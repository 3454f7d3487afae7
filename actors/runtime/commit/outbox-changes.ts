/** Collects the changes that a commit makes to outboxes. */
import { type Change, directOf } from "../activation/change.ts";
import type { OutboxEntry, Unsent } from "../shards/outbox.ts";
import type { Shard } from "../shards/shard.ts";

/**
 * Returns how many bytes a change adds to a commit by outboxes: its sends, and the other entries of each outbox that
 * it is the first to change. `written` holds the shards whose outbox the commit writes already.
 */
export function outboxBytes(
  { shard, change }: { shard: Shard; change: Readonly<Change> },
  written: Set<Shard>,
): number {
  let bytes = change.sendBytes;
  const changed = directOf(change).map(({ from }) => from);
  if (change.sends.length > 0) changed.push(shard);
  for (const one of changed) {
    if (!written.has(one)) bytes += one.outbox.bytes;
    written.add(one);
  }
  return bytes;
}

/** By shard: the new sends of its actors, and the entries of its outbox whose effect is in the commit. */
export function outboxChanges(changes: readonly { shard: Shard; change: Readonly<Change> }[]) {
  const sends = new Map<Shard, { unsent: Unsent[]; done: Set<OutboxEntry> }>();
  const ofShard = (shard: Shard) => {
    const known = sends.get(shard) ?? { unsent: [], done: new Set() };
    sends.set(shard, known);
    return known;
  };
  for (const { shard, change } of changes) {
    if (change.sends.length > 0) ofShard(shard).unsent.push(...change.sends);
    for (const { from, entry } of directOf(change)) ofShard(from).done.add(entry);
  }
  const numbered = [...sends].map(
    ([shard, { unsent, done }]) => [shard, { added: shard.outbox.number(unsent), done }] as const,
  );
  return new Map(numbered);
}

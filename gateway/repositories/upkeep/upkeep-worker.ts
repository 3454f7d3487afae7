/**
 * The worker that compacts packs, finds the commits of pushes and sweeps stored packs. It runs in gateways, which
 * have git, its cache and its process slots.
 */
import { FairSemaphore } from "../../../actors/runtime/lib/fair-semaphore.ts";
import { defineWorker } from "../../../actors/runtime/workers/define-worker.ts";
import { type Envelope, envelope } from "../../../schemas/contract.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { gitUpkeep } from "../../../schemas/repositories/git-upkeep.ts";
import { EVENT_DESCRIBED_MS } from "../../../schemas/repositories/limits.ts";
import { repo } from "../../../schemas/repositories/repo.ts";
import { repoEvents } from "../../../schemas/repositories/repo-events.ts";
import type { GitParts } from "../git-parts.ts";
import { compactPacks } from "./compact-packs.ts";
import { type DescribedRef, describePush } from "./describe-push.ts";
import { type SweepParts, sweepPacks } from "./sweep-packs.ts";

/** Limit for the bytes of commits in one `described` message. */
const EVENTS_DESCRIBED_BYTES = 150_000;
/**
 * Pushes whose commits one gateway looks for at the same time. Each search takes a git process, usually for a short
 * time. One account gets all but one of these slots.
 */
const EVENT_SLOTS = 2;
/**
 * Tasks that one gateway takes from the lane. Those without a slot wait in the gateway. An account rarely has more
 * than two in the lane: `repo-events` asks about one push after another.
 */
const EVENTS_TAKEN_MAX = 16;
/** Compactions and sweeps that one gateway runs at the same time. Each takes a processor core and the disk. */
const UPKEEP_SLOTS = 1;

export function upkeepWorker(parts: GitParts, sweeping: SweepParts, now = Date.now) {
  const events = new FairSemaphore({ places: EVENT_SLOTS, reserved: 1 });
  return defineWorker(gitUpkeep, {
    slots: { upkeep: UPKEEP_SLOTS, events: EVENTS_TAKEN_MAX },
    handlers: {
      async compact({ address, prune }, context) {
        await compactPacks(parts, address, { prune }, context);
        return { send: [envelope(repo, context.key, "upkeepEnded", { pruned: prune })] };
      },
      async describe({ address, changes, others, at = now() }, { key: id, signal }) {
        using ends = new DisposableStack();
        ends.defer(await events.take(address.accountId, signal));
        // The event was published without commits, or soon will be.
        if (now() - at > EVENT_DESCRIBED_MS) return { send: toldTo(address.accountId, unknown(changes)) };
        const query = { id, address, changes, others };
        return { send: toldTo(address.accountId, await describePush(parts, query, signal)) };
      },
      async sweep(_input, context) {
        await sweepPacks(sweeping, context);
        return {};
      },
    },
    failures: {
      // The repository schedules another compaction for later.
      compact(_input, error, { key }) {
        const isFull = error instanceof ActorError && error.code === "storage_full";
        return [envelope(repo, key, "upkeepEnded", { pruned: false, ...(isFull && { isFull }) })];
      },
      describe: ({ address, changes }) => toldTo(address.accountId, unknown(changes)),
      // A failed sweep is not reported, because the next one is scheduled.
      sweep: () => [],
    },
  });
}

const unknown = (changes: readonly { number: number }[]): DescribedRef[] =>
  changes.map(({ number }) => ({ number, pushed: null }));

/** Puts the found commits into `described` messages of limited size. */
function toldTo(accountId: string, described: readonly DescribedRef[]): Envelope[] {
  const groups: DescribedRef[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const event of described) {
    const eventBytes = JSON.stringify(event).length;
    if (bytes + eventBytes > EVENTS_DESCRIBED_BYTES) {
      groups.push([]);
      bytes = 0;
    }
    groups.at(-1)?.push(event);
    bytes += eventBytes;
  }
  return groups.map((events) => envelope(repoEvents, accountId, "described", { events }));
}

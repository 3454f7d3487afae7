/**
 * The worker that compacts packs, finds the commits of pushes and sweeps stored packs. It runs in gateways, which
 * have git, its cache and its process slots.
 */
import { defineWorker } from "../../../actors/runtime/workers/define-worker.ts";
import { type Envelope, envelope } from "../../../schemas/contract.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { gitUpkeep } from "../../../schemas/repositories/git-upkeep.ts";
import { repo } from "../../../schemas/repositories/repo.ts";
import { repoEvents } from "../../../schemas/repositories/repo-events.ts";
import type { GitParts } from "../git-parts.ts";
import { compactPacks } from "./compact-packs.ts";
import { type DescribedRef, describePush } from "./describe-push.ts";
import { type SweepParts, sweepPacks } from "./sweep-packs.ts";

/** Limit for the bytes of commits in one `described` message. */
const EVENTS_DESCRIBED_BYTES = 150_000;
/** Pushes whose commits one gateway looks for at the same time. Each search takes a git process for a short time. */
const EVENT_SLOTS = 2;
/** Compactions and sweeps that one gateway runs at the same time. Each takes a processor core and the disk. */
const UPKEEP_SLOTS = 1;

export function upkeepWorker(parts: GitParts, sweeping: SweepParts) {
  return defineWorker(gitUpkeep, {
    slots: { upkeep: UPKEEP_SLOTS, events: EVENT_SLOTS },
    handlers: {
      async compact({ address, prune }, context) {
        await compactPacks(parts, address, { prune }, context);
        return { send: [envelope(repo, context.key, "upkeepEnded", { pruned: prune })] };
      },
      async describe({ address, changes, others }, { key: id, signal }) {
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
      describe: ({ address, changes }) =>
        toldTo(
          address.accountId,
          changes.map(({ number }) => ({ number, pushed: null })),
        ),
      // A failed sweep is not reported, because the next one is scheduled.
      sweep: () => [],
    },
  });
}

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

/**
 * The worker that compacts packs, finds the commits of pushes and sweeps stored packs. It runs in gateways, which
 * have git, its cache and its process slots.
 */
import { FairSemaphore } from "../../../actors/runtime/lib/fair-semaphore.ts";
import { defineWorker } from "../../../actors/runtime/workers/define-worker.ts";
import { type Envelope, envelope } from "../../../schemas/contract.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { TASK_RUN_MS_MAX } from "../../../schemas/limits.ts";
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
/** Compactions that one gateway runs at the same time. Each takes a processor core and the disk. */
const UPKEEP_SLOTS = 1;
/**
 * Compactions of one account that wait in one gateway. A further one ends at once, and its repository repeats it after
 * UPKEEP_RETRY_MS. So one account does not fill the lane.
 */
export const UPKEEP_WAITING_MAX = 16;
/**
 * Compactions that one gateway takes from the lane. Those without a slot wait in the gateway, which lets accounts take
 * turns. More than one account may fill are enough: a gateway that is killed costs each of them a try.
 */
const UPKEEP_TAKEN_MAX = UPKEEP_WAITING_MAX + 8;
/**
 * How long a compaction may wait in the gateway. After this and TASK_RUN_MS_MAX its repository does not yet take it for
 * lost (UPKEEP_LOST_MS).
 */
const UPKEEP_WAIT_MS = 30 * 60_000;
/** A sweep is short, and runs beside a compaction. */
const SWEEP_SLOTS = 1;

export function upkeepWorker(parts: GitParts, sweeping: SweepParts, now = Date.now) {
  const turns = new FairSemaphore({ places: UPKEEP_SLOTS });
  const events = new FairSemaphore({ places: EVENT_SLOTS, reserved: 1 });
  return defineWorker(gitUpkeep, {
    slots: { upkeep: UPKEEP_TAKEN_MAX, events: EVENTS_TAKEN_MAX, sweep: SWEEP_SLOTS },
    // The run alone has its own limit.
    runMsMax: UPKEEP_WAIT_MS + 2 * TASK_RUN_MS_MAX,
    handlers: {
      async compact({ address, prune }, context) {
        using ends = new DisposableStack();
        const leave = await turnOf(turns, address.accountId, context.signal);
        if (leave) {
          ends.defer(leave);
          const run = (signal: AbortSignal) =>
            compactPacks(parts, address, { prune }, { ...context, signal });
          await within(TASK_RUN_MS_MAX, context.signal, run);
        }
        // Without a turn, the repository repeats the compaction later, as after a failure.
        const pruned = prune && leave !== undefined;
        return { send: [envelope(repo, context.key, "upkeepEnded", { pruned })] };
      },
      async describe({ address, changes, others, at = now() }, { key: id, signal }) {
        using ends = new DisposableStack();
        ends.defer(await events.take(address.accountId, signal));
        // The event was published without commits, or soon will be.
        if (now() - at > EVENT_DESCRIBED_MS)
          return { send: toldTo(address.accountId, unknown(changes)) };
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

/** Waits for a turn of the account. Resolves with undefined if it has too many waiting, or if the wait takes too long. */
async function turnOf(
  turns: FairSemaphore,
  accountId: string,
  signal: AbortSignal,
): Promise<(() => void) | undefined> {
  if (turns.waitingOf(accountId) >= UPKEEP_WAITING_MAX) return undefined;
  const late = AbortSignal.timeout(UPKEEP_WAIT_MS);
  return await turns.take(accountId, AbortSignal.any([signal, late])).catch(() => {
    signal.throwIfAborted();
    return undefined;
  });
}

/** Runs work whose signal aborts after this time. Refuses then with `deadline_exceeded`. */
async function within(
  ms: number,
  left: AbortSignal,
  run: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const late = AbortSignal.timeout(ms);
  await run(AbortSignal.any([left, late])).catch((error: unknown) => {
    left.throwIfAborted();
    if (!late.aborted) throw error;
    throw new ActorError("deadline_exceeded", `Cannot compact: it takes longer than ${ms} ms`);
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

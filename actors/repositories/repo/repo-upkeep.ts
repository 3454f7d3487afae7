/** Schedules the compaction of a repository's packs, and applies its result. */
import {
  type DeepReadonly,
  type Envelope,
  envelope,
  type Input,
} from "../../../schemas/contract.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { gitUpkeep } from "../../../schemas/repositories/git-upkeep.ts";
import { COMPACT_PACKS, PRUNE_INTERVAL_MS } from "../../../schemas/repositories/limits.ts";
import { type Pack, packRow, type repo } from "../../../schemas/repositories/repo.ts";
import type { LiveRepo, RepoRow, RepoRows } from "./repo-state.ts";

/**
 * UPKEEP_RETRY_MS is the pause before a failed or postponed upkeep is retried, and UPKEEP_FULL_MS the pause if the
 * account or the stream of packs had no room: a sweep makes room only once an hour. After UPKEEP_LOST_MS without a
 * report, the upkeep task counts as lost.
 */
export const UPKEEP_RETRY_MS = 60_000;
export const UPKEEP_FULL_MS = 30 * 60_000;
export const UPKEEP_LOST_MS = 60 * 60_000;
/** A repository without free space is pruned at most once in this time. */
export const PRUNE_FOR_ROOM_MS = 24 * 60 * 60_000;

interface Step {
  state: LiveRepo;
  send?: Envelope[];
  remind?: { upkeepDue: number | null };
}

/**
 * Enqueues an upkeep task if the repository needs upkeep and no task runs. Until a requested prune is due, the task
 * joins packs but prunes nothing.
 */
export function beginUpkeep(live: LiveRepo, id: string, now: number): Step {
  const { accountId, namespace, name, nextUpkeepAt = now, toPrune = false } = live;
  const prune = toPrune && pruneDueAt(live, now) <= now;
  if (now < nextUpkeepAt || !(prune || live.packs >= COMPACT_PACKS)) return { state: live };
  const task = { address: { accountId, namespace, name }, prune };
  return {
    state: { ...live, nextUpkeepAt: now + UPKEEP_LOST_MS },
    send: [envelope(gitUpkeep, id, "compact", task)],
    remind: { upkeepDue: now + UPKEEP_LOST_MS },
  };
}

/** Enqueues an upkeep task, or sets the reminder for a requested prune that is not due yet. */
export function continueUpkeep(live: LiveRepo, id: string, now: number): Step {
  const step = beginUpkeep(live, id, now);
  const { nextUpkeepAt = now, toPrune = false } = live;
  // Until `nextUpkeepAt`, the reminder is set for that time.
  if (step.send || !toPrune || now < nextUpkeepAt) return step;
  return { ...step, remind: { upkeepDue: pruneDueAt(live, now) } };
}

/** Schedules a prune. Returns also the earliest time at which it runs. */
export function requestPrune(live: LiveRepo, id: string, now: number): Step & { at: number } {
  const at = pruneDueAt(live, now);
  return { ...continueUpkeep({ ...live, toPrune: true }, id, now), at };
}

/** Returns the earliest time at which the repository may be pruned: now, or PRUNE_INTERVAL_MS after the last prune. */
const pruneDueAt = ({ prunedAt = Number.NEGATIVE_INFINITY }: LiveRepo, now: number) =>
  Math.max(now, prunedAt + PRUNE_INTERVAL_MS);

/**
 * Records the end of an upkeep task. If the task failed, or more packs arrived meanwhile, another task follows. In a
 * repository with packs, `compact` clears `toPrune`; a prune without packs sends no `compact`, so `toPrune` is
 * cleared here.
 */
export function endUpkeep(
  live: LiveRepo,
  { pruned, isFull = false }: Input<(typeof repo)["messages"]["upkeepEnded"]>,
  now: number,
): Step {
  const { nextUpkeepAt: _, toPrune = false, ...rest } = live;
  const isPruned = pruned && live.packs === 0;
  const state = { ...rest, ...(toPrune && !isPruned && { toPrune }) };
  const hasFewPacks = state.packs < COMPACT_PACKS;
  if (hasFewPacks && !state.toPrune) return { state, remind: { upkeepDue: null } };
  const nextUpkeepAt = now + (isFull ? UPKEEP_FULL_MS : UPKEEP_RETRY_MS);
  const pruneAt = pruneDueAt(state, now);
  // `nextUpkeepAt` stays unset, because packs may have to be joined before the prune is due.
  if (hasFewPacks && pruneAt > nextUpkeepAt) return { state, remind: { upkeepDue: pruneAt } };
  return { state: { ...state, nextUpkeepAt }, remind: { upkeepDue: nextUpkeepAt } };
}

/** Starts a prune after a push was refused for lack of space, because unreachable objects may free some. */
export function makeRoom(live: LiveRepo, id: string, now: number): Step {
  const { prunedAt = Number.NEGATIVE_INFINITY, toPrune = false } = live;
  if (toPrune || now < prunedAt + PRUNE_FOR_ROOM_MS) return { state: live };
  return beginUpkeep({ ...live, toPrune: true }, id, now);
}

/**
 * Starts the upkeep that lets a refused push succeed later: a prune if the repository has too many bytes, a
 * compaction if it has too many packs.
 */
export function afterRefusal(live: LiveRepo, results: string, id: string, now: number): Step {
  if (results.includes("q")) return makeRoom(live, id, now);
  return results.includes("k") ? beginUpkeep(live, id, now) : { state: live };
}

export function compact(
  live: LiveRepo,
  rows: RepoRows,
  input: DeepReadonly<Input<(typeof repo)["messages"]["compact"]>>,
  now: number,
) {
  const {
    version: seen,
    generation,
    replaced,
    packs,
    kept: staying = [],
    prune,
    treeDepth,
  } = input;
  const replacedRows = replaced.map((sha256) => rows.get(packRow(sha256)));
  const changed =
    generation !== live.generation ||
    replacedRows.some((row) => row === undefined) ||
    // The new packs omit objects that the `staying` packs hold. If another compaction has replaced a `staying` pack,
    // those objects may now exist only in the packs that would be removed here.
    staying.some((sha256) => !rows.has(packRow(sha256))) ||
    (prune && (seen !== live.version || replaced.length !== live.packs));
  if (changed) {
    throw new ActorError("conflict", "Cannot compact: the packs have changed");
  }
  checkHeld(packs);
  const version = live.version + 1;
  const { toPrune = false, ...rest } = live;
  const kept = packs.filter(
    ({ sha256 }) => replaced.includes(sha256) || !rows.has(packRow(sha256)),
  );
  const goneBytes = replacedRows.reduce(
    (sum, row) => sum + (row?.row === "pack" ? row.bytes : 0),
    0,
  );
  const state: LiveRepo = {
    ...rest,
    // A prune clears `toPrune`, so that a later request starts another prune.
    ...(toPrune && !prune && { toPrune }),
    version,
    generation: live.generation + Number(prune),
    packsRemovedVersion: version,
    // The measured depth applies only if no push came after the measurement, because a push may nest directories
    // deeper.
    ...(treeDepth !== undefined && seen === live.version && { treeDepth }),
    ...(prune && { prunedAt: now }),
    packs: live.packs - replaced.length + kept.length,
    packsBytes: kept.reduce((sum, { bytes }) => sum + bytes, live.packsBytes - goneBytes),
  };
  return {
    state,
    rows: {
      ...Object.fromEntries(replaced.map((sha256) => [packRow(sha256), null])),
      ...packRows(kept, version),
    },
    reply: { version },
  };
}

interface Held {
  heldMs?: number | undefined;
}

/** True if the store may delete the pack by now. Without `heldMs`, the caller has checked that the pack is stored. */
export const isOver = ({ heldMs = 0 }: Held) => heldMs < 0;

/** Refuses packs whose hold has ended, because the sweep may have deleted them. */
export function checkHeld(packs: readonly Held[]): void {
  if (!packs.some(isOver)) return;
  const text = "Cannot use stored packs: they were stored too long ago; try again";
  throw new ActorError("unavailable", text, { retryAfterS: 1 });
}

export const packRows = (packs: readonly Pack[], version: number): Record<string, RepoRow | null> =>
  Object.fromEntries(
    packs.map(({ sha256, bytes, indexBytes }) => [
      packRow(sha256),
      { row: "pack" as const, version, bytes, indexBytes },
    ]),
  );

/** Schedules the compaction of a repository's packs, and applies its result. */
import {
  type DeepReadonly,
  type Envelope,
  envelope,
  type Input,
} from "../../../schemas/contract.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { gitUpkeep } from "../../../schemas/repositories/git-upkeep.ts";
import { COMPACT_PACKS } from "../../../schemas/repositories/limits.ts";
import { type Pack, packRow, type repo } from "../../../schemas/repositories/repo.ts";
import type { LiveRepo, RepoRow, RepoRows } from "./repo-state.ts";

/** The pause before a failed upkeep is retried, and the time after which a silent task counts as lost. */
export const UPKEEP_RETRY_MS = 60_000;
export const UPKEEP_LOST_MS = 60 * 60_000;
/** A repository that has no room looks so often whether something in it is not needed any more. */
export const PRUNE_FOR_ROOM_MS = 24 * 60 * 60_000;

interface Step {
  state: LiveRepo;
  send?: Envelope[];
  remind?: { upkeepDue: number | null };
}

/** Enqueues upkeep if it is due and no task runs. */
export function beginUpkeep(live: LiveRepo, id: string, now: number): Step {
  const { accountId, namespace, name, nextUpkeepAt = now, toPrune = false } = live;
  if (now < nextUpkeepAt || !isDue(live)) return { state: live };
  const task = { address: { accountId, namespace, name }, prune: toPrune };
  return {
    state: { ...live, nextUpkeepAt: now + UPKEEP_LOST_MS },
    send: [envelope(gitUpkeep, id, "compact", task)],
    remind: { upkeepDue: now + UPKEEP_LOST_MS },
  };
}

/**
 * Ends an upkeep. After a failure, or if more packs arrived meanwhile, another one follows. The commit of a prune
 * itself records its end; only a repository without packs needs none.
 */
export function endUpkeep(live: LiveRepo, pruned: boolean, now: number): Step {
  const { nextUpkeepAt: _, toPrune = false, ...rest } = live;
  const isPruned = pruned && live.packs === 0;
  const state = { ...rest, ...(toPrune && !isPruned && { toPrune }) };
  if (!isDue(state)) return { state, remind: { upkeepDue: null } };
  const nextUpkeepAt = now + UPKEEP_RETRY_MS;
  return { state: { ...state, nextUpkeepAt }, remind: { upkeepDue: nextUpkeepAt } };
}

/** Prunes after a push was refused for lack of room, because unreachable objects may free some. */
export function makeRoom(live: LiveRepo, id: string, now: number): Step {
  const { prunedAt = Number.NEGATIVE_INFINITY, toPrune = false } = live;
  if (toPrune || now < prunedAt + PRUNE_FOR_ROOM_MS) return { state: live };
  return beginUpkeep({ ...live, toPrune: true }, id, now);
}

/**
 * Begins the upkeep that lets a refused push succeed later: a prune for want of bytes, a compaction for too many
 * packs.
 */
export function afterRefusal(live: LiveRepo, results: string, id: string, now: number): Step {
  if (results.includes("q")) return makeRoom(live, id, now);
  return results.includes("k") ? beginUpkeep(live, id, now) : { state: live };
}

const isDue = ({ packs, toPrune = false }: LiveRepo) => toPrune || packs >= COMPACT_PACKS;

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
    // Another compaction may have replaced them by packs without the objects that now only the packs replaced here
    // have.
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
    // A request from now on starts another prune.
    ...(toPrune && !prune && { toPrune }),
    version,
    generation: live.generation + Number(prune),
    packsRemovedVersion: version,
    // Later pushes may have nested deeper directories, so the measured depth counts only without them.
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

/** A missing `heldMs` means that the caller has checked the store. */
export const isOver = ({ heldMs = 0 }: Held) => heldMs < 0;

/** Refuses packs whose hold has ended, because they may have been swept. */
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

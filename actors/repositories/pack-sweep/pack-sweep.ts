/**
 * Decides which stored packs and large files to delete: those that no repository has named for a long time and that
 * no push holds.
 */
import { z } from "zod";
import { type Envelope, envelope } from "../../../schemas/contract.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { gitStorage } from "../../../schemas/repositories/git-storage.ts";
import { gitUpkeep } from "../../../schemas/repositories/git-upkeep.ts";
import { PACK_HELD_MS, PACK_SWEEP_BATCH } from "../../../schemas/repositories/limits.ts";
import { packSweep, StoredPack } from "../../../schemas/repositories/pack-sweep.ts";
import { EpochMs } from "../../../schemas/values.ts";
import { defineActor } from "../../runtime/kinds/define-actor.ts";

/**
 * A pack is deleted if no repository has named it for this long. By then all readers with an older manifest have
 * ended (GIT_CACHE_GRACE_MS), and every hold has expired, even if the clocks of two machines differ.
 */
export const PACK_SWEEP_GRACE_MS = 2 * 60 * 60_000;
/**
 * How often a sweep compares all stored packs with the packs that repositories name. A sweep of 100,000 packs takes
 * some seconds.
 */
export const PACK_SWEEP_MS = 60 * 60_000;
/**
 * How long after its grace period a condemned pack is remembered if no sweep reports it again. Forgetting it too
 * early only delays its deletion, because the next sweep condemns it again.
 */
export const PACK_CONDEMNED_MS = 24 * 60 * 60_000;

const Condemned = StoredPack.extend({
  /** When a sweep first found that no repository names the blob. */
  at: EpochMs,
  /** True after the removal of the blob was ordered. */
  removing: z.boolean(),
});

/** The times of the sweep. Tests use shorter times, but their `heldMs` must also be well below `graceMs`. */
export interface SweepTimes {
  heldMs: number;
  graceMs: number;
  everyMs: number;
}

const TIMES: SweepTimes = {
  heldMs: PACK_HELD_MS,
  graceMs: PACK_SWEEP_GRACE_MS,
  everyMs: PACK_SWEEP_MS,
};

export const packSweepActor = packSweepActorWith(TIMES);

/**
 * Stored at: `packs`
 *
 * State: `{ begun }`. A row for each stored pack that no repository named, `<account>.<sha-256>`, and for each such
 * large file, `<account>.lfs.<sha-256>`: `{ family: "pack" or "lfs", accountId, sha256, sequence, bytes?, at,
 * removing }`, its last sequence in `PACKS`, its bytes, the time of that look, and whether a task to remove it was
 * sent; the row is removed with the pack, when a repository names the pack again, or after a day
 */
export function packSweepActorWith({ heldMs, graceMs, everyMs }: SweepTimes) {
  return defineActor(packSweep, {
    state: z.object({ begun: z.boolean() }),
    initial: { begun: false },
    rows: Condemned,

    handlers: {
      begin(state, _input, { now }) {
        if (state.begun) return { state };
        return { state: { begun: true }, remind: { sweepDue: now + everyMs } };
      },

      sweepDue(state, _input, { key, now, rows }) {
        const old = [...rows].filter(
          ([, { at, removing }]) => !removing && at + graceMs + PACK_CONDEMNED_MS < now,
        );
        const forgotten = old.slice(0, PACK_SWEEP_BATCH).map(([row]) => [row, null] as const);
        return {
          state,
          rows: Object.fromEntries(forgotten),
          send: [envelope(gitUpkeep, key, "sweep", {})],
          remind: { sweepDue: now + everyMs },
        };
      },

      observe: (state, _input, { now }) => ({ state, reply: { at: now } }),

      condemn(state, { observedFrom, packs }, { now, rows }) {
        const changes: Record<string, z.infer<typeof Condemned>> = {};
        const removable: StoredPack[] = [];
        for (const pack of packs) {
          const row = rowOf(pack);
          const known = rows.get(row);
          if (known?.removing) continue; // As `listRemovable` has it.
          if (known?.sequence !== pack.sequence) {
            changes[row] = { ...pack, at: now, removing: false };
          } else if (known.at + graceMs <= observedFrom) {
            changes[row] = { ...known, ...pack, removing: true };
            removable.push(pack);
          }
        }
        return { state, rows: changes, reply: { removable } };
      },

      listRemovable(state, _input, { rows }) {
        const removable = [...rows.values()].filter(({ removing }) => removing);
        return { state, reply: { removable: removable.slice(0, PACK_SWEEP_BATCH) } };
      },

      removed(state, { packs }, { rows }) {
        const deletable = packs
          .map((pack) => ({ ...pack, row: rowOf(pack) }))
          .filter(({ row, sequence }) => rows.get(row)?.sequence === sequence);
        // The report is stored in the commit that removes the rows. So each pack is subtracted exactly once, wherever
        // a gateway stops.
        return {
          state,
          send: freed(deletable.map(({ row, ...pack }) => ({ ...pack, ...rows.get(row) }))),
          rows: Object.fromEntries(deletable.map(({ row }) => [row, null])),
          reply: {},
        };
      },

      hold(state, { family, accountId, packs }, { rows }) {
        const condemned = packs
          .map((sha256) => rowOf({ family, accountId, sha256 }))
          .filter((row) => rows.has(row));
        if (condemned.some((row) => rows.get(row)?.removing)) {
          const text = "Cannot use a pack: it is being removed; try again";
          throw new ActorError("busy", text, { retryAfterS: 1 });
        }
        const reply = { heldMs };
        if (condemned.length === 0) return { state, reply };
        return { state, rows: Object.fromEntries(condemned.map((row) => [row, null])), reply };
      },
    },
  });
}

const rowOf = ({ family, accountId, sha256 }: Omit<StoredPack, "sequence">) =>
  family === "pack" ? `${accountId}.${sha256}` : `${accountId}.${family}.${sha256}`;

/** Returns a message for each account whose packs are removed. */
function freed(packs: readonly Pick<StoredPack, "accountId" | "bytes">[]): Envelope[] {
  const bytesOf = new Map<string, number>();
  for (const { accountId, bytes = 0 } of packs) {
    if (bytes > 0) bytesOf.set(accountId, (bytesOf.get(accountId) ?? 0) + bytes);
  }
  return [...bytesOf].map(([accountId, bytes]) =>
    envelope(gitStorage, accountId, "removed", { bytes }),
  );
}

/**
 * The contract of the sweep of packs and large files: which nobody names, and since when. There is one, with the key
 * PACK_SWEEP.
 */
import { z } from "zod";
import { defineContract } from "../contract.ts";
import { EpochMs, Id, Sha256 } from "../values.ts";
import { PACK_SWEEP_BATCH, SWAP_PACKS_MAX } from "./limits.ts";

export const PACK_SWEEP = "packs";

const Nothing = z.object({});

/** The sorts of blobs that are swept: packs, and large files. */
export const SweptFamily = z.enum(["pack", "lfs"]).default("pack");
export type SweptFamily = z.output<typeof SweptFamily>;

/** A stored pack or large file as it was seen: written anew it has another sequence. */
export const StoredPack = z.object({
  family: SweptFamily,
  accountId: Id,
  sha256: Sha256,
  sequence: z.int().min(1),
});
export type StoredPack = z.infer<typeof StoredPack>;
const StoredPacks = z.array(StoredPack).max(PACK_SWEEP_BATCH);

export const packSweep = defineContract({
  kind: "pack-sweep",
  messages: {
    /** There are packs: from now on they are swept. Once more changes nothing. */
    begin: { input: Nothing },
    /** Returns the actor's time, for a sweep that is about to read which packs are named. */
    observe: { input: Nothing, reply: z.object({ at: EpochMs }) },
    /**
     * Condemns packs that no repository names. Returns those whose grace period is over, which can be deleted now.
     * They cannot be held until they are `removed`.
     */
    condemn: {
      input: z.object({
        /** From `observe`: all of them were looked for after it. */
        observedFrom: EpochMs,
        packs: StoredPacks,
      }),
      reply: z.object({ removable: StoredPacks }),
    },
    /** Packs whose removal was ordered but not confirmed. The process that was to remove them may have died. */
    listRemovable: { input: Nothing, reply: z.object({ removable: StoredPacks }) },
    removed: { input: z.object({ packs: StoredPacks }), reply: Nothing },
    /**
     * Keeps these blobs from removal for PACK_HELD_MS. The caller then checks whether they exist. Refuses with `busy`
     * while one of them is being removed.
     */
    hold: {
      input: z.object({
        family: SweptFamily,
        accountId: Id,
        packs: z.array(Sha256).max(SWAP_PACKS_MAX),
      }),
      reply: z.object({ heldMs: z.int().min(0) }),
    },
    /** Reminder. */
    sweepDue: { input: Nothing },
  },
});

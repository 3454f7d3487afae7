/**
 * The contract of the actor that records which packs and large files no repository names, and since when. There is
 * one such actor, with the key PACK_SWEEP.
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

/** A stored pack or large file, as a sweep found it. If the blob is stored again, it has another sequence. */
export const StoredPack = z.object({
  family: SweptFamily,
  accountId: Id,
  sha256: Sha256,
  sequence: z.int().min(1),
  /**
   * The bytes by which the account's count falls when the blob is removed; 0 for an aborted upload, which was never
   * counted. Absent in rows of older versions.
   */
  bytes: z.int().min(0).optional(),
});
export type StoredPack = z.infer<typeof StoredPack>;
const StoredPacks = z.array(StoredPack).max(PACK_SWEEP_BATCH);

export const packSweep = defineContract({
  kind: "pack-sweep",
  messages: {
    /** Reports that packs exist. From then on a sweep runs regularly. A repetition changes nothing. */
    begin: { input: Nothing },
    /** Returns the actor's current time. A sweep calls this before it reads which packs the repositories name. */
    observe: { input: Nothing, reply: z.object({ at: EpochMs }) },
    /**
     * Condemns packs that no repository names. Returns the packs whose grace period is over: the caller can delete
     * them now. Nobody can hold such a pack until `removed` has reported it.
     */
    condemn: {
      input: z.object({
        /** The time from `observe`. The sweep read after this time that no repository names these packs. */
        observedFrom: EpochMs,
        packs: StoredPacks,
      }),
      reply: z.object({ removable: StoredPacks }),
    },
    /**
     * Returns the packs whose removal was ordered but not confirmed. The process that should remove them may have
     * died.
     */
    listRemovable: { input: Nothing, reply: z.object({ removable: StoredPacks }) },
    /** Reports that the packs are removed. Their accounts no longer pay for them. */
    removed: { input: z.object({ packs: StoredPacks }), reply: Nothing },
    /**
     * Holds blobs: none of them is removed for PACK_HELD_MS. The caller must then check whether the blobs exist.
     * Refuses with `busy` while one of them is being removed.
     */
    hold: {
      input: z.object({
        family: SweptFamily,
        accountId: Id,
        packs: z.array(Sha256).max(SWAP_PACKS_MAX),
      }),
      reply: z.object({ heldMs: z.int().min(0) }),
    },
    /** Reminder: the next sweep is due. */
    sweepDue: { input: Nothing },
  },
});

/**
 * The contract of the actor that counts an account's bytes in repositories and its imports, and limits both. The key
 * is the account's id.
 */
import { z } from "zod";
import { defineContract } from "../contract.ts";
import { ActorError } from "../errors.ts";
import { Id } from "../values.ts";
import { RepoId } from "./git-names.ts";
import { GIT_SIZE_SETTINGS } from "./git-sizes.ts";

const Bytes = z.int().min(0);
const Nothing = z.object({});

export const GitStored = z.object({
  /**
   * Bytes of packs and large files, each counted once. A blob that no repository names counts until the sweep deletes
   * it.
   */
  bytes: Bytes,
  /** Space reserved for uploads in flight. */
  heldBytes: Bytes,
});
export type GitStored = z.infer<typeof GitStored>;

export const gitStorage = defineContract({
  kind: "git-storage",
  messages: {
    /**
     * Reserves bytes for an upload, for a limited time. Refuses with `storage_full` past `bytesMax` (0 means no
     * limit), and with `busy` if the account has too many reservations.
     */
    hold: { input: z.object({ id: Id, bytes: Bytes, bytesMax: Bytes }), reply: GitStored },
    /**
     * Ends a reservation. `stored` is true if the bytes are now stored; false if none were stored, or only bytes that
     * were counted before.
     */
    settle: { input: z.object({ id: Id, bytes: Bytes, stored: z.boolean() }) },
    /** Counts the bytes of small uploads, which have no reservation. One message counts many uploads together. */
    add: { input: z.object({ bytes: Bytes }), reply: GitStored },
    /** Reports removed bytes. The actor of the sweep sends it, because a gateway may stop before it reports. */
    removed: { input: z.object({ bytes: Bytes }) },
    get: { input: Nothing, reply: GitStored },

    /**
     * Counts an import before it is queued, for a limited time. The id is that of the new repository. Refuses with
     * `limit_reached` past IMPORTS_PER_ACCOUNT_MAX.
     */
    holdImport: { input: z.object({ id: RepoId }), reply: Nothing },
    /** Reports that an import has ended, or that it was never queued. */
    importEnded: { input: z.object({ id: RepoId }) },
  },
});

/** Returns the refusal of an upload past the limit `bytesMax`, which is not 0. */
export const accountFull = ({ bytes, heldBytes }: GitStored, bytesMax: number) =>
  new ActorError(
    "storage_full",
    `Cannot store: the account has ${bytes + heldBytes} bytes in repositories and may have ${bytesMax} (${GIT_SIZE_SETTINGS.accountBytes}); deleted objects free room some hours later`,
  );

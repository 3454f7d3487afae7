/**
 * The contract of what an account has stored in repositories: its bytes, held to a bound. The key is the account's
 * id.
 */
import { z } from "zod";
import { defineContract } from "../contract.ts";
import { ActorError } from "../errors.ts";
import { Id } from "../values.ts";
import { GIT_SIZE_SETTINGS } from "./git-sizes.ts";

const Bytes = z.int().min(0);
const Nothing = z.object({});

export const GitStored = z.object({
  /** Bytes of packs and large files, each counted once, until the sweep deletes what no repository names. */
  bytes: Bytes,
  /** Space reserved for uploads in flight. */
  heldBytes: Bytes,
});
export type GitStored = z.infer<typeof GitStored>;

export const gitStorage = defineContract({
  kind: "git-storage",
  messages: {
    /**
     * Keeps room for a while for what is about to be stored. Refuses with `storage_full`; a `bytesMax` of 0 is no
     * bound.
     */
    hold: { input: z.object({ id: Id, bytes: Bytes, bytesMax: Bytes }), reply: GitStored },
    /** Reports that the bytes are stored; or that none are, or only bytes that were stored before. */
    settle: { input: z.object({ id: Id, bytes: Bytes, stored: z.boolean() }) },
    /** Counts what is stored already: many small things together. */
    add: { input: z.object({ bytes: Bytes }), reply: GitStored },
    /** The sweep reports removed bytes. */
    removed: { input: z.object({ bytes: Bytes }), reply: Nothing },
    get: { input: Nothing, reply: GitStored },
  },
});

/** `bytesMax` is not 0. */
export const accountFull = ({ bytes, heldBytes }: GitStored, bytesMax: number) =>
  new ActorError(
    "storage_full",
    `Cannot store: the account has ${bytes + heldBytes} bytes in repositories and may have ${bytesMax} (${GIT_SIZE_SETTINGS.accountBytes}); what is deleted makes room some hours later`,
  );

/**
 * Deletes stored packs and large files that no repository names. Failed pushes, compactions and deletions leave them
 * behind.
 */
import type { BlobStore } from "../../../actors/runtime/store/blob-store.ts";
import type { TaskContext } from "../../../actors/runtime/workers/define-worker.ts";
import { lfsBlob, lfsRow } from "../../../schemas/repositories/lfs.ts";
import { PACK_SWEEP_BATCH } from "../../../schemas/repositories/limits.ts";
import { packSweep, type StoredPack } from "../../../schemas/repositories/pack-sweep.ts";
import { packBlob, packRow, repo } from "../../../schemas/repositories/repo.ts";

/** Number of unnamed packs that a sweep checks at the same time. */
const LOOKS_AT_ONCE = 16;
/** Number of removals in one report. Each may free bytes of another account, and the actor notifies each account. */
const REMOVALS_REPORTED = 100;

export interface SweepParts {
  blobs: Pick<BlobStore, "names" | "size" | "lastSequence" | "removeUpTo">;
  rows: {
    /** Returns the names of the matching rows of all actors of a kind. */
    list(kind: string, name: string): Promise<ReadonlySet<string>>;
  };
}

const BLOB = /^git\.([0-9a-f]{32})\.(lfs\.)?([0-9a-f]{64})$/;

type Stored = Omit<StoredPack, "sequence" | "bytes">;
const rowOf = ({ family, sha256 }: Stored) => (family === "lfs" ? lfsRow(sha256) : packRow(sha256));
const blobOf = ({ family, accountId, sha256 }: Stored) =>
  family === "lfs" ? lfsBlob(accountId, sha256) : packBlob(accountId, sha256);

/**
 * Finds packs that no repository names. The names are read from the rows of all repositories, so that a lost message
 * never causes the loss of a pack. The sweep's actor decides which packs have been unnamed for long enough.
 */
export async function sweepPacks(
  { blobs, rows }: SweepParts,
  { key, signal, call }: Pick<TaskContext, "key" | "signal" | "call">,
): Promise<void> {
  // Removes packs that another gateway should have removed but did not. No repository can have named them since,
  // because the actor refuses to hold them.
  for (;;) {
    const { removable } = await call(packSweep, key, "listRemovable", {});
    if (removable.length === 0) break;
    await remove(removable);
  }
  const { at: observedFrom } = await call(packSweep, key, "observe", {});
  const packs = await rows.list(repo.kind, packRow("*"));
  const named = packs.union(await rows.list(repo.kind, lfsRow("*")));
  const unnamed: Stored[] = [];
  for (const blob of await blobs.names("git")) {
    const [, accountId, lfs, sha256] = BLOB.exec(blob) ?? [];
    if (accountId === undefined || sha256 === undefined) continue;
    const stored: Stored = { family: lfs ? "lfs" : "pack", accountId, sha256 };
    if (!named.has(rowOf(stored))) unnamed.push(stored);
  }
  for (let from = 0; from < unnamed.length; from += PACK_SWEEP_BATCH) {
    const packs = await lookedAt(unnamed.slice(from, from + PACK_SWEEP_BATCH));
    if (packs.length === 0) continue;
    const { removable } = await call(packSweep, key, "condemn", { observedFrom, packs });
    await remove(removable);
  }

  /**
   * Returns the packs that are really unnamed. Checks each with a separate request, because a long list may lack rows
   * that were moved while the list was read.
   */
  async function lookedAt(packs: readonly Stored[]): Promise<StoredPack[]> {
    const found: StoredPack[] = [];
    const left = packs.values();
    const lookers = Array.from({ length: LOOKS_AT_ONCE }, async () => {
      for (const stored of left) {
        signal.throwIfAborted();
        if ((await rows.list(repo.kind, rowOf(stored))).size > 0) continue;
        const sequence = await blobs.lastSequence(blobOf(stored));
        if (sequence === undefined) continue;
        found.push({ ...stored, sequence, bytes: await bytesOf(stored) });
      }
    });
    await Promise.all(lookers);
    return found;
  }

  /** Returns the bytes that the account's count contains for the blob. An aborted upload was never counted. */
  async function bytesOf(stored: Stored): Promise<number> {
    return (await blobs.size(blobOf(stored))) ?? 0;
  }

  /**
   * Removes only the version that the sweep has found. If the pack was stored again since then, the new version
   * stays. The actor knows the bytes before the removal, so a sweep that stops in between loses none.
   */
  async function remove(packs: readonly StoredPack[]): Promise<void> {
    for (let from = 0; from < packs.length; from += REMOVALS_REPORTED) {
      const removed: StoredPack[] = [];
      for (const pack of packs.slice(from, from + REMOVALS_REPORTED)) {
        signal.throwIfAborted();
        // Rows of older versions do not have the bytes.
        const bytes = pack.bytes ?? (await bytesOf(pack));
        await blobs.removeUpTo(blobOf(pack), pack.sequence);
        removed.push({ ...pack, bytes });
      }
      await call(packSweep, key, "removed", { packs: removed });
    }
  }
}

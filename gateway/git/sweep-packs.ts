/** Removes stored packs that no repository names: of pushes that broke off, of packs that were put together, of what was deleted. */
import type { BlobStore } from "../../actors/runtime/blob-store.ts";
import type { TaskContext } from "../../actors/runtime/define-worker.ts";
import { PACK_SWEEP_BATCH } from "../../schemas/git-limits.ts";
import { packSweep, type StoredPack } from "../../schemas/pack-sweep.ts";
import { packBlob, packRow, repo } from "../../schemas/repo.ts";

export interface SweepParts {
  blobs: Pick<BlobStore, "names" | "lastSequence" | "removeUpTo">;
  rows: {
    /** Names of the rows of all actors of a kind. */
    list(kind: string, name: string): Promise<ReadonlySet<string>>;
  };
}

/** Looked at by itself at a time. */
const LOOKS_AT_ONCE = 16;
const BLOB = /^git\.([0-9a-f]{32})\.([0-9a-f]{64})$/;

/**
 * What is named is read from the rows of all repositories: a message that did not come, or a list that lacks one, must
 * not cost a pack. The sweep's actor says what has been nobody's for long enough.
 */
export async function sweepPacks(
  { blobs, rows }: SweepParts,
  { key, signal, call }: Pick<TaskContext, "key" | "signal" | "call">,
): Promise<void> {
  // What somebody else was to remove and did not; nobody can have named it since.
  for (;;) {
    const { removable } = await call(packSweep, key, "listRemovable", {});
    if (removable.length === 0) break;
    await remove(removable);
  }
  const { at: observedFrom } = await call(packSweep, key, "observe", {});
  const named = await rows.list(repo.kind, packRow("*"));
  const unnamed: { accountId: string; sha256: string }[] = [];
  for (const blob of await blobs.names("git")) {
    const [, accountId, sha256] = BLOB.exec(blob) ?? [];
    if (accountId === undefined || sha256 === undefined) continue;
    if (!named.has(packRow(sha256))) unnamed.push({ accountId, sha256 });
  }
  for (let from = 0; from < unnamed.length; from += PACK_SWEEP_BATCH) {
    const packs = await lookedAt(unnamed.slice(from, from + PACK_SWEEP_BATCH));
    if (packs.length === 0) continue;
    const { removable } = await call(packSweep, key, "condemn", { observedFrom, packs });
    await remove(removable);
  }

  /** Each by itself, since a long list may lack what moved while it was made. */
  async function lookedAt(
    packs: readonly { accountId: string; sha256: string }[],
  ): Promise<StoredPack[]> {
    const found: StoredPack[] = [];
    const left = packs.values();
    const lookers = Array.from({ length: LOOKS_AT_ONCE }, async () => {
      for (const { accountId, sha256 } of left) {
        signal.throwIfAborted();
        const row = packRow(sha256);
        if ((await rows.list(repo.kind, row)).size > 0) continue;
        const sequence = await blobs.lastSequence(packBlob(accountId, sha256));
        if (sequence !== undefined) found.push({ accountId, sha256, sequence });
      }
    });
    await Promise.all(lookers);
    return found;
  }

  /** Only as it was seen: what somebody has stored anew since then is another. */
  async function remove(packs: readonly StoredPack[]): Promise<void> {
    for (const { accountId, sha256, sequence } of packs) {
      signal.throwIfAborted();
      await blobs.removeUpTo(packBlob(accountId, sha256), sequence);
    }
    if (packs.length > 0) await call(packSweep, key, "removed", { packs: [...packs] });
  }
}

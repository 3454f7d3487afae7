/** The packs in a gateway's cache. All repositories of an account share them, and each is fetched only once. */
import { link, mkdir, rename, stat } from "node:fs/promises";
import { ActorError } from "../../../schemas/errors.ts";
import { GIT_CACHE_GRACE_MS } from "../../../schemas/repositories/limits.ts";
import type { Pack } from "../../../schemas/repositories/repo.ts";
import type { PackFiles, PackStore } from "../packs/pack-store.ts";
import { type CacheFiles, gone, isCode, linkedPack, removeAll } from "./cache-files.ts";
import { SharedWork } from "./shared-work.ts";

/** Attempts to link a pack. If the cache is emptied during each attempt, the read is refused. */
const TRIES_MAX = 5;

export class PackPool {
  readonly #files: CacheFiles;
  readonly #store: PackStore;
  /** The running fetches, by the path of the pack. Forks share packs, and many may be opened at the same time. */
  readonly #fetches = new SharedWork<void>();

  constructor(files: CacheFiles, store: PackStore) {
    this.#files = files;
    this.#store = store;
  }

  /** Moves the files of a pack into the cache. */
  async adopt(accountId: string, sha256: string, made: PackFiles): Promise<void> {
    const pooled = this.#files.pooled(accountId, sha256);
    const take = () => rename(made.pack, pooled.pack);
    await take().catch(async (error: unknown) => {
      if (!isCode(error, "ENOENT")) throw error;
      await mkdir(this.#files.poolFolder(accountId), { recursive: true });
      await take();
    });
    await rename(made.index, pooled.index);
  }

  /** Links a pack into a folder of objects, and fetches it first if it is missing. */
  async link(accountId: string, pack: Pack, objects: string, signal: AbortSignal): Promise<void> {
    const pooled = this.#files.pooled(accountId, pack.sha256);
    const linked = linkedPack(objects, pack.sha256);
    for (let tries = 1; ; tries++) {
      try {
        await this.#check(pooled, pack);
        // Links the index last, because git recognises a pack by its index.
        await link(pooled.pack, linked.pack).catch(ignoreThere);
        await link(pooled.index, linked.index).catch(ignoreThere);
        return;
      } catch (error) {
        if (!isCode(error, "ENOENT") || tries >= TRIES_MAX) throw error;
        const fetch = (fetching: AbortSignal) => this.#fetch(accountId, pack, fetching);
        await this.#fetches.run(pooled.pack, signal, fetch);
      }
    }
  }

  /**
   * Checks that the files of a pack are complete. Removes incomplete files and throws the error of a missing file, so
   * that the caller fetches the pack.
   */
  async #check(pooled: PackFiles, { bytes, indexBytes }: Pack): Promise<void> {
    const [pack, index] = await Promise.all([stat(pooled.pack), stat(pooled.index)]);
    if (pack.size === bytes && index.size === indexBytes) return;
    await Promise.all([removeAll(pooled.pack), removeAll(pooled.index)]);
    throw gone("pack");
  }

  async #fetch(accountId: string, pack: Pack, signal: AbortSignal): Promise<void> {
    // Another fetch may have ended since the caller found the pack missing.
    const missing = await this.#check(this.#files.pooled(accountId, pack.sha256), pack).then(
      () => false,
      (error: unknown) => isCode(error, "ENOENT"),
    );
    if (!missing) return;
    const temporary = this.#files.temporary("pack");
    const files = { pack: `${temporary}.pack`, index: `${temporary}.idx` };
    const until = AbortSignal.any([signal, AbortSignal.timeout(GIT_CACHE_GRACE_MS)]);
    try {
      await this.#store.get(accountId, pack, files, until);
      await this.adopt(accountId, pack.sha256, files);
    } catch (error) {
      await Promise.all([removeAll(files.pack), removeAll(files.index)]);
      if (!(error instanceof ActorError) || error.code !== "not_found") throw error;
      // A manifest names only stored packs. If a pack is missing, a compaction has replaced it meanwhile. The
      // client's next attempt reads the new manifest.
      const text = "Cannot read repository: it changed meanwhile; try again";
      throw new ActorError("unavailable", text, { retryAfterS: 1 });
    }
  }
}

function ignoreThere(error: unknown): void {
  if (!isCode(error, "EEXIST")) throw error;
}

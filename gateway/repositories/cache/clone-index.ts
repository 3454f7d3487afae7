/** Builds bitmaps over the packs on disk, so that git serves a clone without walking the history. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { GIT_NAMES_KEPT } from "../../../schemas/repositories/limits.ts";
import type { OpenedRepo } from "../opened-repo.ts";
import { runGit } from "../process/git-process.ts";
import type { ProcessSlots } from "../process/process-slots.ts";
import { dropPacksIndex, entriesOf, PACKS_INDEX, statOf } from "./cache-files.ts";
import type { FileAges } from "./file-ages.ts";
import type { RepoCache } from "./repo-cache.ts";

/**
 * A repository whose packs together have at least GIT_BITMAPS_FROM_BYTES gets bitmaps after a clone; for smaller ones
 * bitmaps save nothing. Bitmaps are built again when the packs have grown by the factor GIT_BITMAPS_GROWTH. A build
 * is aborted after GIT_BITMAPS_MS_MAX; for a million commits it takes half a minute.
 */
const GIT_BITMAPS_FROM_BYTES = 1_000_000;
export const GIT_BITMAPS_GROWTH = 1.5;
const GIT_BITMAPS_MS_MAX = 120_000;

interface Made {
  /** Bytes of all packs of the repository at the time of the build. */
  bytes: number;
  /** True if the index could not be built. The build is not tried again until the packs have grown. */
  failed: boolean;
}

interface CloneIndexesParts {
  cache: RepoCache;
  slots: ProcessSlots;
  fromBytes?: number | undefined;
}

export class CloneIndexes {
  readonly #cache: RepoCache;
  readonly #slots: ProcessSlots;
  readonly #fromBytes: number;
  /** The builds, by the folder of objects, oldest first. */
  readonly #made = new Map<string, Made>();
  readonly #underWay = new Map<string, Promise<void>>();

  constructor({ cache, slots, fromBytes = GIT_BITMAPS_FROM_BYTES }: CloneIndexesParts) {
    this.#cache = cache;
    this.#slots = slots;
    this.#fromBytes = fromBytes;
  }

  /**
   * Builds the index after a clone, because more clones may follow. Does nothing for a small or shallow repository,
   * while requests wait for git, or if an index exists and the packs have hardly grown since.
   */
  async want(repo: OpenedRepo): Promise<void> {
    const { manifest } = repo;
    const objects = this.#cache.files.objects(repo.id, manifest.generation);
    const bytes = Array.from(manifest.packs.values()).reduce((sum, pack) => sum + pack.bytes, 0);
    // Git uses no bitmaps in a shallow repository.
    if (bytes < this.#fromBytes || manifest.shallow.length > 0) return;
    const known = this.#made.get(objects);
    if (known && bytes < known.bytes * GIT_BITMAPS_GROWTH) {
      if (known.failed || (await statOf(join(objects, "pack", PACKS_INDEX)))) return;
    }
    // Requests that wait for git go first.
    if (this.#slots.waiting > 0) return;
    const underWay = this.#underWay.get(objects) ?? this.#makeOnce(repo, objects, bytes);
    this.#underWay.set(objects, underWay);
    await underWay.finally(() => this.#underWay.delete(objects));
  }

  /** Deletes the index after git failed. The index may be the reason, and git works without it. */
  async drop({ id, manifest }: OpenedRepo): Promise<void> {
    await dropPacksIndex(join(this.#cache.files.objects(id, manifest.generation), "pack"));
  }

  async #makeOnce(repo: OpenedRepo, objects: string, bytes: number): Promise<void> {
    const failed = await this.#make(repo, join(objects, "pack")).then(
      (isMade) => !isMade,
      () => true,
    );
    this.#made.delete(objects);
    this.#made.set(objects, { bytes, failed });
    for (const oldest of this.#made.keys()) {
      if (this.#made.size <= GIT_NAMES_KEPT) break;
      this.#made.delete(oldest);
    }
  }

  async #make(repo: OpenedRepo, packs: string): Promise<boolean> {
    const { manifest } = repo;
    const signal = AbortSignal.timeout(GIT_BITMAPS_MS_MAX);
    const leave = await this.#slots.enter(repo, signal);
    try {
      await using view = await this.#cache.open(repo, manifest, signal);
      await removeOldLock(join(packs, `${PACKS_INDEX}.lock`), this.#cache.ages);
      const before = await entriesOf(packs);
      const [largest] = [...manifest.packs.values()].sort((one, other) => other.bytes - one.bytes);
      const preferred = `--preferred-pack=pack-${largest?.sha256}.idx`;
      const { cwd, environment } = view;
      const { code } = await runGit(["multi-pack-index", "write", "--bitmap", preferred], {
        cwd,
        environment,
        signal,
      });
      const after = new Set(await entriesOf(packs));
      // An index that names a missing pack would make every clone fail.
      if (before.some((name) => name.endsWith(".pack") && !after.has(name)))
        await dropPacksIndex(packs);
      return code === 0;
    } finally {
      leave();
    }
  }
}

/** Removes the lock of a killed process. */
async function removeOldLock(path: string, ages: FileAges): Promise<void> {
  const stats = await statOf(path);
  if (stats && ages.isPastGrace(stats.mtimeMs)) await rm(path, { force: true });
}

/** Makes a repository readable for git: fetches its packs from the bus, writes its refs to one file, reuses both. */
import { mkdir, rename, rmdir, unlink, utimes } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { ActorError } from "../../../schemas/errors.ts";
import { GIT_CACHE_BYTES_MAX, GIT_NAMES_KEPT } from "../../../schemas/repositories/limits.ts";
import type { PackFiles, PackStore } from "../packs/pack-store.ts";
import {
  CacheFiles,
  dropPacksIndex,
  entriesOf,
  gone,
  isCode,
  isGone,
  OBJECTS_FROM_VIEW,
  removeAll,
  statOf,
  versionOfUse,
  versionOfView,
} from "./cache-files.ts";
import { sweepCache } from "./cache-sweep.ts";
import { FileAges } from "./file-ages.ts";
import type { Manifest } from "./manifest-reader.ts";
import { PackPool } from "./pack-pool.ts";
import { SharedWork } from "./shared-work.ts";
import { hasPacks, wholeView, writeView } from "./view-files.ts";

/** How often a repository in use is checked for old views. */
const OLD_VIEWS_MS = 60_000;
/** Packs that are fetched at the same time for one repository. */
const GIT_CACHE_FETCHES = 8;
/** Limits the unneeded files that wait for their last reader. A full list is cleared, and their waits start again. */
const GIT_CACHE_UNNAMED_MAX = 20_000;

/** A repository on disk. Its files stay until the view is disposed of. */
export interface RepoView extends AsyncDisposable {
  /** The folder in which git runs. */
  cwd: string;
  environment: Readonly<Record<string, string>>;
  /** Identifies the folder: a folder that is created again under the same name has another `madeId`. */
  madeId: string;
  /** Checks the view against the manifest that it was opened with; see `RepoCache.isIntact`. */
  isIntact(): Promise<boolean>;
}

interface ViewedRepo {
  id: string;
  accountId: string;
}

/** The view without refs. */
const PLAIN_VIEW = "plain";
/** The time of a file may be behind the clock by this much. */
const MARKER_SLACK_MS = 100;
/** Attempts to open a view. If the cache is emptied during each attempt, the read is refused. */
const TRIES_MAX = 5;

export class RepoCache {
  readonly files: CacheFiles;
  readonly ages: FileAges;
  readonly #pool: PackPool;
  readonly #now: () => number;
  /** Views being made by this process, by their folder and version. */
  readonly #making = new SharedWork<void>();
  #sweeping: Promise<void> | undefined;
  /** For each file that is not needed any more: the time when this was first found. */
  readonly #unneeded = new Map<string, number>();
  /** For each repository: the time of the last check for old views. */
  readonly #lookedForOld = new Map<string, number>();

  constructor(folder: string, packs: PackStore, now: () => number) {
    this.files = new CacheFiles(folder);
    this.#pool = new PackPool(this.files, packs);
    this.#now = now;
    this.ages = new FileAges(now);
  }

  /**
   * Opens a view of this manifest, and fetches missing packs first. The files of the view stay until the view is
   * disposed of.
   */
  open(repo: ViewedRepo, manifest: Manifest, signal: AbortSignal): Promise<RepoView> {
    return this.#open(repo, manifest, `${manifest.version}-${manifest.digest}`, signal);
  }

  /**
   * Opens a view of all objects without refs. After a change of the repository, this view needs only links to the new
   * packs.
   */
  openObjects(repo: ViewedRepo, manifest: Manifest, signal: AbortSignal): Promise<RepoView> {
    // The file `shallow` belongs to one version, so a shallow repository needs the complete view.
    if (manifest.shallow.length > 0) return this.open(repo, manifest, signal);
    return this.#open(repo, manifest, PLAIN_VIEW, signal);
  }

  async #open(
    repo: ViewedRepo,
    manifest: Manifest,
    name: string,
    signal: AbortSignal,
  ): Promise<RepoView> {
    const cwd = join(this.files.views(repo.id, manifest.generation), name);
    const marker = this.files.use(repo.id, manifest.version);
    const leave = () => rmdir(marker).catch(ignoreGone);
    for (let tries = 1; ; tries++) {
      try {
        if (tries > 1) await this.files.prepare();
        await this.#mark(repo.id, marker);
        await this.#make(repo, manifest, cwd, signal);
        const madeId = await wholeView(cwd);
        // The cache was emptied after the view was made.
        if (madeId === undefined) throw gone(`view ${cwd}`);
        const place = { cwd, madeId };
        return {
          ...place,
          isIntact: () => this.isIntact(place, manifest),
          environment: { GIT_DIR: ".", GIT_OBJECT_DIRECTORY: OBJECTS_FROM_VIEW },
          [Symbol.asyncDispose]: leave,
        };
      } catch (error) {
        await leave();
        const isFull = isCode(error, "ENOSPC");
        if (!isFull && !isGone(error)) throw error;
        if (tries >= TRIES_MAX) throw isFull ? error : cacheEmptied();
        // On a full disk, evicts repositories that nobody reads to make room for this one.
        if (isFull) await this.#makeRoom();
      }
    }
  }

  /** Runs one sweep at a time. All waiting callers share the space that the sweep frees. */
  #makeRoom(): Promise<void> {
    const sweep = () => sweepCache(this.files, { bytesMax: GIT_CACHE_BYTES_MAX, ages: this.ages });
    this.#sweeping ??= sweep().finally(() => {
      this.#sweeping = undefined;
    });
    return this.#sweeping;
  }

  /**
   * Returns whether the view is still the folder that was opened, with every pack of the manifest. If not, an object
   * that is missing in the view may still be in the repository.
   */
  async isIntact(
    { cwd, madeId }: Pick<RepoView, "cwd" | "madeId">,
    manifest: Manifest,
  ): Promise<boolean> {
    return (await wholeView(cwd)) === madeId && (await hasPacks(cwd, manifest));
  }

  /**
   * Moves the files of a pack into the cache, so that the pack need not be fetched. The pack is in the store, or will
   * be soon.
   */
  async adopt(accountId: string, sha256: string, made: PackFiles): Promise<void> {
    await this.#pool.adopt(accountId, sha256, made);
  }

  /** Creates a marker of use. It is a folder, because a folder is created in one operation. */
  async #mark(id: string, marker: string): Promise<void> {
    await mkdir(marker).catch(async (error: unknown) => {
      if (!isCode(error, "ENOENT")) throw error;
      await mkdir(this.files.uses(id), { recursive: true });
      await mkdir(marker);
    });
  }

  async #make(repo: ViewedRepo, manifest: Manifest, cwd: string, signal: AbortSignal) {
    const isThere = (await touch(cwd, this.#now())) && (await wholeView(cwd)) !== undefined;
    const isPlain = basename(cwd) === PLAIN_VIEW;
    if (isThere && !isPlain && (await hasPacks(cwd, manifest))) return;
    const name = `${cwd} ${manifest.version}`;
    const found = { cwd, isThere, isPlain };
    await this.#making.run(name, signal, (making) => this.#makeView(repo, manifest, found, making));
  }

  async #makeView(
    repo: ViewedRepo,
    manifest: Manifest,
    { cwd, isThere, isPlain }: { cwd: string; isThere: boolean; isPlain: boolean },
    signal: AbortSignal,
  ): Promise<void> {
    const { generation } = manifest;
    await this.#linkPacks(repo, manifest, this.files.objects(repo.id, generation), signal);
    if (!isThere) await this.#writeView(manifest, cwd, isPlain ? new Map() : manifest.refs);
    await this.#removeOldGenerations(repo, generation);
    const lookedAt = this.#lookedForOld.get(repo.id) ?? Number.NEGATIVE_INFINITY;
    if (this.#now() - lookedAt < OLD_VIEWS_MS) return;
    if (this.#lookedForOld.size >= GIT_NAMES_KEPT) this.#lookedForOld.clear();
    this.#lookedForOld.set(repo.id, this.#now());
    await this.#removeOldViews(this.files.views(repo.id, generation), basename(cwd));
  }

  async #writeView(manifest: Manifest, cwd: string, refs: Manifest["refs"]): Promise<void> {
    const temporary = this.files.temporary("view");
    await mkdir(dirname(cwd), { recursive: true });
    await writeView(temporary, manifest, refs);
    try {
      // The remains of a partly removed view would make `rename` fail.
      if ((await wholeView(cwd)) === undefined) await removeAll(cwd);
      await rename(temporary, cwd);
    } catch (error) {
      await removeAll(temporary);
      // Another process has made the same view at the same time.
      if (!isCode(error, "ENOTEMPTY", "EEXIST")) throw error;
    }
  }

  async #linkPacks(
    repo: ViewedRepo,
    manifest: Manifest,
    objects: string,
    signal: AbortSignal,
  ): Promise<void> {
    const linked = new Set(await entriesOf(join(objects, "pack")));
    const missing = [...manifest.packs.values()].filter(
      ({ sha256 }) => !linked.has(`pack-${sha256}.idx`) || !linked.has(`pack-${sha256}.pack`),
    );
    if (linked.size === 0) await mkdir(join(objects, "pack"), { recursive: true });
    const fetchers = Array.from(
      { length: Math.min(GIT_CACHE_FETCHES, missing.length) },
      async () => {
        for (let pack = missing.pop(); pack; pack = missing.pop()) {
          await this.#pool.link(repo.accountId, pack, objects, signal);
        }
      },
    );
    await Promise.all(fetchers);
    await this.#unlinkUnnamed(repo, linked, manifest);
  }

  /**
   * Deletes packs that a compaction has replaced. New readers use the new packs, but earlier readers may still read
   * the old ones. A pack is deleted when all current uses of the repository began after the replacement was noticed.
   */
  async #unlinkUnnamed(repo: ViewedRepo, linked: ReadonlySet<string>, manifest: Manifest) {
    const folder = join(this.files.objects(repo.id, manifest.generation), "pack");
    const unnamed = [...linked].filter((name) => {
      const sha256 = /^pack-([0-9a-f]{64})\./.exec(name)?.[1];
      const isNamed = sha256 === undefined || manifest.packs.has(sha256);
      if (isNamed) this.#unneeded.delete(join(folder, name));
      return !isNamed;
    });
    if (unnamed.length === 0) return;
    const { version, generation } = manifest;
    const seen = [
      ...(await entriesOf(this.files.views(repo.id, generation))).map(versionOfView),
      ...(await entriesOf(this.files.uses(repo.id))).map(versionOfUse),
    ];
    // If a newer version is in use, the packs that this manifest does not name may be new.
    if (seen.some((other) => other > version)) return;
    const usedSince = await this.#oldestUse(repo.id);
    const going = unnamed
      .map((name) => join(folder, name))
      .filter((path) => this.#mayGo(path, usedSince));
    if (going.length === 0) return;
    if (await dropPacksIndex(folder)) {
      // Processes that have read the index need all packs in it. The packs are deleted when these processes have left.
      for (const path of going) this.#unneeded.set(path, this.#now());
      return;
    }
    for (const path of going) await unlink(path).catch(ignoreGone);
    // Another process may have built an index over the deleted packs meanwhile.
    await dropPacksIndex(folder);
  }

  /**
   * Returns whether a file can be deleted: all current uses of its repository began after the file became unneeded,
   * or the grace period is over.
   */
  #mayGo(path: string, usedSince: number): boolean {
    const since = this.#unneeded.get(path) ?? this.#now();
    const isRead = usedSince <= since + MARKER_SLACK_MS;
    if (!isRead || this.ages.isPastGrace(since)) {
      this.#unneeded.delete(path);
      return true;
    }
    if (this.#unneeded.size >= GIT_CACHE_UNNAMED_MAX) this.#unneeded.clear();
    this.#unneeded.set(path, since);
    return false;
  }

  /** Returns the start of the longest running use, or the current time if the repository is not in use. */
  async #oldestUse(id: string): Promise<number> {
    const uses = this.files.uses(id);
    const names = await entriesOf(uses);
    const stats = await Promise.all(names.map((name) => statOf(join(uses, name))));
    const now = this.#now();
    // Older markers belong to killed processes.
    const began = stats.flatMap((stat) => stat?.mtimeMs ?? []);
    return Math.min(now, ...began.filter((at) => !this.ages.isPastGrace(at)));
  }

  /** Removes the folders of earlier generations, which contain objects that a prune has dropped. */
  async #removeOldGenerations(repo: ViewedRepo, generation: number): Promise<void> {
    if (generation === 0) return;
    const names = await entriesOf(this.files.repo(repo.id));
    const old = names.filter((name) => /^\d+$/.test(name) && Number(name) < generation);
    if (old.length === 0) return;
    const usedSince = await this.#oldestUse(repo.id);
    for (const name of old) {
      const path = join(this.files.repo(repo.id), name);
      if (this.#mayGo(path, usedSince)) await removeAll(path);
    }
  }

  async #removeOldViews(views: string, current: string): Promise<void> {
    for (const version of await entriesOf(views)) {
      if (version === current) continue;
      const stats = await statOf(join(views, version));
      if (stats && this.ages.isPastGrace(stats.mtimeMs)) {
        await removeAll(join(views, version));
      }
    }
  }
}

/** Returns the refusal of a read during which the cache was emptied at every attempt. */
export const cacheEmptied = () =>
  new ActorError(
    "unavailable",
    "Cannot read repository: the cache of this gateway is being emptied",
    { retryAfterS: 1 },
  );

/** Marks a file or folder as used now. Returns false if it does not exist. */
async function touch(path: string, now: number): Promise<boolean> {
  try {
    await utimes(path, now / 1_000, now / 1_000);
    return true;
  } catch (error) {
    if (isCode(error, "ENOENT")) return false;
    throw error;
  }
}

function ignoreGone(error: unknown): void {
  if (!isCode(error, "ENOENT")) throw error;
}

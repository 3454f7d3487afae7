/** Shows git a repository as its manifest has it: packs fetched from the bus, refs in one file, both made once. */
import { link, mkdir, rename, rmdir, stat, unlink, utimes } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { ActorError } from "../../../schemas/errors.ts";
import {
  GIT_CACHE_BYTES_MAX,
  GIT_CACHE_GRACE_MS,
  GIT_NAMES_KEPT,
} from "../../../schemas/repositories/limits.ts";
import type { Pack } from "../../../schemas/repositories/repo.ts";
import type { PackFiles, PackStore } from "../packs/pack-store.ts";
import {
  CacheFiles,
  dropPacksIndex,
  entriesOf,
  isCode,
  linkedPack,
  OBJECTS_FROM_VIEW,
  removeAll,
  statOf,
  versionOfUse,
} from "./cache-files.ts";
import { sweepCache } from "./cache-sweep.ts";
import type { Manifest } from "./manifest-reader.ts";
import { hasPacks, wholeView, writeView } from "./view-files.ts";

/** How often a repository that is in use is looked at for views of old. */
const OLD_VIEWS_MS = 60_000;
/** Packs fetched at a time for one repository. */
const GIT_CACHE_FETCHES = 8;
/** Files of packs that wait for their last reader; forgotten, they wait anew. */
const GIT_CACHE_UNNAMED_MAX = 20_000;

/** A repository on disk, for as long as it is not disposed of. */
export interface RepoView extends AsyncDisposable {
  /** The folder in which git runs. */
  cwd: string;
  environment: Readonly<Record<string, string>>;
  /** Differs for a folder that was made again under the same name. */
  madeId: string;
}

interface ViewedRepo {
  id: string;
  accountId: string;
}

/** The view without refs. */
const PLAIN_VIEW = "plain";
/** A file's time may be behind the clock by as much. */
const MARKER_SLACK_MS = 100;
/** Tries before the cache counts as broken, because another process empties it again and again. */
const TRIES_MAX = 5;

export class RepoCache {
  readonly files: CacheFiles;
  readonly #packs: PackStore;
  readonly #now: () => number;
  /** Views being made by this process. */
  readonly #making = new Map<string, Promise<void>>();
  #sweeping: Promise<void> | undefined;
  /** Since when files are there that are not needed any more. */
  readonly #unneeded = new Map<string, number>();
  /** When repositories were last looked at for views of old. */
  readonly #lookedForOld = new Map<string, number>();

  constructor(folder: string, packs: PackStore, now: () => number) {
    this.files = new CacheFiles(folder);
    this.#packs = packs;
    this.#now = now;
  }

  /** Brings the cache to this manifest. What it needs stays until the view is disposed of. */
  open(repo: ViewedRepo, manifest: Manifest, signal: AbortSignal): Promise<RepoView> {
    return this.#open(repo, manifest, `${manifest.version}`, signal);
  }

  /** Opens all objects without refs, so that a change only needs links to the new packs. */
  openObjects(repo: ViewedRepo, manifest: Manifest, signal: AbortSignal): Promise<RepoView> {
    // A view includes the commits at which the history ends.
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
    for (let attempt = 1; ; attempt++) {
      try {
        if (attempt > 1) await this.files.prepare();
        await this.#mark(repo.id, marker);
        await this.#make(repo, manifest, cwd, signal);
        const madeId = await wholeView(cwd);
        // The cache was emptied after the view was made.
        if (madeId === undefined) throw changedError(`view ${cwd}`);
        return {
          cwd,
          madeId,
          environment: { GIT_DIR: ".", GIT_OBJECT_DIRECTORY: OBJECTS_FROM_VIEW },
          [Symbol.asyncDispose]: leave,
        };
      } catch (error) {
        await leave();
        const isFull = isCode(error, "ENOSPC");
        if (!isFull && !isCode(error, "ENOENT")) throw error;
        if (attempt >= TRIES_MAX) throw isFull ? error : cacheEmptied();
        // On a full disk, evict unread repositories in favour of this one.
        if (isFull) await this.#makeRoom();
      }
    }
  }

  /** One sweep at a time. All waiting callers share the space that it frees. */
  #makeRoom(): Promise<void> {
    const sweep = () => sweepCache(this.files, { bytesMax: GIT_CACHE_BYTES_MAX, now: this.#now() });
    this.#sweeping ??= sweep().finally(() => {
      this.#sweeping = undefined;
    });
    return this.#sweeping;
  }

  /**
   * Whether a view is still the opened folder with every pack of a manifest. If the cache was emptied since, an
   * object missing from the view may still be in the repository.
   */
  async isIntact({ cwd, madeId }: RepoView, manifest: Manifest): Promise<boolean> {
    return (await wholeView(cwd)) === madeId && (await hasPacks(cwd, manifest));
  }

  /** Takes over files of a pack that has been stored, or is about to be, so that it need not be fetched. */
  async adopt(accountId: string, sha256: string, made: PackFiles): Promise<void> {
    const pooled = this.files.pooled(accountId, sha256);
    const take = () => rename(made.pack, pooled.pack);
    await take().catch(async (error: unknown) => {
      if (!isCode(error, "ENOENT")) throw error;
      await mkdir(this.files.poolFolder(accountId), { recursive: true });
      await take();
    });
    await rename(made.index, pooled.index);
  }

  /** A folder, since that is made at one go. */
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
    const made =
      this.#making.get(name) ?? this.#makeView(repo, manifest, { cwd, isThere, isPlain });
    this.#making.set(name, made);
    made.finally(() => this.#making.delete(name)).catch(() => {});
    // Others may wait for the same work, so a caller that leaves does not end it.
    await leaving(made, signal);
  }

  async #makeView(
    repo: ViewedRepo,
    manifest: Manifest,
    { cwd, isThere, isPlain }: { cwd: string; isThere: boolean; isPlain: boolean },
  ): Promise<void> {
    const { generation } = manifest;
    await this.#linkPacks(repo, manifest, this.files.objects(repo.id, generation));
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
      // The rest of a half removed view is in the way.
      if ((await wholeView(cwd)) === undefined) await removeAll(cwd);
      await rename(temporary, cwd);
    } catch (error) {
      await removeAll(temporary);
      // Another process has made the same view at the same time.
      if (!isCode(error, "ENOTEMPTY", "EEXIST")) throw error;
    }
  }

  async #linkPacks(repo: ViewedRepo, manifest: Manifest, objects: string): Promise<void> {
    const linked = new Set(await entriesOf(join(objects, "pack")));
    const missing = [...manifest.packs.values()].filter(
      ({ sha256 }) => !linked.has(`pack-${sha256}.idx`) || !linked.has(`pack-${sha256}.pack`),
    );
    if (linked.size === 0) await mkdir(join(objects, "pack"), { recursive: true });
    const fetchers = Array.from(
      { length: Math.min(GIT_CACHE_FETCHES, missing.length) },
      async () => {
        for (let pack = missing.pop(); pack; pack = missing.pop()) {
          await this.#linkPack(repo, pack, objects);
        }
      },
    );
    await Promise.all(fetchers);
    await this.#unlinkUnnamed(repo, linked, manifest);
  }

  async #linkPack({ accountId }: ViewedRepo, pack: Pack, objects: string): Promise<void> {
    const pooled = this.files.pooled(accountId, pack.sha256);
    const linked = linkedPack(objects, pack.sha256);
    for (let attempt = 1; ; attempt++) {
      try {
        await this.#checkPooled(pooled, pack);
        // The index last: git knows a pack by it.
        await link(pooled.pack, linked.pack).catch(ignoreThere);
        await link(pooled.index, linked.index).catch(ignoreThere);
        return;
      } catch (error) {
        if (!isCode(error, "ENOENT") || attempt >= TRIES_MAX) throw error;
        await this.#fetch(accountId, pack);
      }
    }
  }

  /** Rejects as where it is not there where it is not whole: whatever the reason, it can be fetched. */
  async #checkPooled(pooled: PackFiles, { bytes, indexBytes }: Pack): Promise<void> {
    const [pack, index] = await Promise.all([stat(pooled.pack), stat(pooled.index)]);
    if (pack.size === bytes && index.size === indexBytes) return;
    await Promise.all([removeAll(pooled.pack), removeAll(pooled.index)]);
    throw changedError("pack");
  }

  async #fetch(accountId: string, pack: Pack): Promise<void> {
    const temporary = this.files.temporary("pack");
    const files = { pack: `${temporary}.pack`, index: `${temporary}.idx` };
    try {
      await this.#packs.get(accountId, pack, files, AbortSignal.timeout(GIT_CACHE_GRACE_MS));
      await this.adopt(accountId, pack.sha256, files);
    } catch (error) {
      await Promise.all([removeAll(files.pack), removeAll(files.index)]);
      if (!(error instanceof ActorError) || error.code !== "not_found") throw error;
      // A manifest names only stored packs, so a missing pack was compacted meanwhile. The next attempt reads the new
      // manifest.
      const text = "Cannot read repository: it changed meanwhile; try again";
      throw new ActorError("unavailable", text, { retryAfterS: 1 });
    }
  }

  /**
   * Compaction has put others in their place: who comes now finds those, and who came before may still read these. They
   * go when all who use the repository have come since.
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
      ...(await entriesOf(this.files.views(repo.id, generation))).map(Number),
      ...(await entriesOf(this.files.uses(repo.id))).map(versionOfUse),
    ];
    // A view of an older version does not know newer packs.
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
    // The index may have been made meanwhile.
    await dropPacksIndex(folder);
  }

  /** True where all who use its repository have come since it was first not needed. */
  #mayGo(path: string, usedSince: number): boolean {
    const since = this.#unneeded.get(path) ?? this.#now();
    const isRead = usedSince <= since + MARKER_SLACK_MS;
    if (!isRead || this.#now() - since > GIT_CACHE_GRACE_MS) {
      this.#unneeded.delete(path);
      return true;
    }
    if (this.#unneeded.size >= GIT_CACHE_UNNAMED_MAX) this.#unneeded.clear();
    this.#unneeded.set(path, since);
    return false;
  }

  /** The start of the longest running use, or the current time if there is none. */
  async #oldestUse(id: string): Promise<number> {
    const uses = this.files.uses(id);
    const names = await entriesOf(uses);
    const stats = await Promise.all(names.map((name) => statOf(join(uses, name))));
    const now = this.#now();
    // Older markers belong to killed processes.
    const began = stats.flatMap((stat) => stat?.mtimeMs ?? []);
    return Math.min(now, ...began.filter((at) => now - at <= GIT_CACHE_GRACE_MS));
  }

  /** Removes the views of generations before objects were dropped. */
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
      if (stats && this.#now() - stats.mtimeMs > GIT_CACHE_GRACE_MS) {
        await removeAll(join(views, version));
      }
    }
  }
}

/** The refusal of a read when the cache was emptied at every try. */
export const cacheEmptied = () =>
  new ActorError(
    "unavailable",
    "Cannot read repository: the cache of this gateway is being emptied",
    { retryAfterS: 1 },
  );

const changedError = (what: string) =>
  Object.assign(new Error(`Cannot use ${what}: it is not whole`), { code: "ENOENT" });

/** Notes that it is used. False where it is not there. */
async function touch(path: string, now: number): Promise<boolean> {
  try {
    await utimes(path, now / 1_000, now / 1_000);
    return true;
  } catch (error) {
    if (isCode(error, "ENOENT")) return false;
    throw error;
  }
}

function leaving<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const leave = () => reject(signal.reason);
    if (signal.aborted) leave();
    signal.addEventListener("abort", leave, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", leave));
  });
}

function ignoreThere(error: unknown): void {
  if (!isCode(error, "EEXIST")) throw error;
}

function ignoreGone(error: unknown): void {
  if (!isCode(error, "ENOENT")) throw error;
}

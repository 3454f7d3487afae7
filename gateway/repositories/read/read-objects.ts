/**
 * Reads objects of repositories with one process for each repository in use, up to a limit. A process ends when
 * nobody has read from it for a while.
 */

import { FairSemaphore } from "../../../actors/runtime/lib/fair-semaphore.ts";
import { ActorError } from "../../../schemas/errors.ts";
import type { Manifest } from "../cache/manifest-reader.ts";
import { type ReadOptions, readInView } from "../cache/read-in-view.ts";
import { cacheEmptied, type RepoCache, type RepoView } from "../cache/repo-cache.ts";
import { SharedWork } from "../cache/shared-work.ts";
import type { OpenedRepo } from "../opened-repo.ts";
import { type ObjectHead, type ReadObject, ReadProcess, ReadProcessGone } from "./read-process.ts";

/** Repositories of one gateway that have a process for reads at the same time. Each process takes 14 MB. */
export const READERS_MAX = 32;
/** One account's share of these repositories. Without it, slow reads of one account would refuse all other accounts. */
export const READERS_ACCOUNT_SHARE = 0.5;
/** A process ends after this time without a request. */
export const READER_IDLE_MS = 60_000;
/**
 * Age at which a process is replaced. It must be well below GIT_CACHE_GRACE_MS, after which the cache ignores the
 * process's marker of use.
 */
export const READER_AGE_MS_MAX = 20 * 60_000;

/**
 * Repositories of one gateway that are opened at the same time: their packs may be fetched first. One account opens at
 * most all but the reserved ones; the others wait.
 */
const OPENINGS = { places: 16, reserved: 4 };

/** Attempts of one read. If the cache is emptied during each attempt, the read is refused. */
const TRIES_MAX = 5;

/**
 * Reads objects of a repository. It finds all objects that existed at the time of its request, and perhaps newer
 * ones.
 */
export interface ObjectReader {
  head(name: string): Promise<ObjectHead | undefined>;
  read(name: string): Promise<ReadObject | undefined>;
}

export type HeldView = Pick<RepoView, "cwd" | "environment" | "isIntact"> & Disposable;

interface Opened {
  accountId: string;
  process: ReadProcess;
  view: RepoView;
  generation: number;
  packs: ReadonlySet<string>;
  openedAt: number;
  usedAt: number;
  /** The number of views from `view()` that are not disposed of yet. */
  holders: number;
}

export class ObjectReaders {
  readonly #cache: RepoCache;
  readonly #now: () => number;
  readonly #readersMax: number;
  /** The opened processes by repository id, the least recently used first. */
  readonly #opened = new Map<string, Opened>();
  /** The processes being opened, by repository id. */
  readonly #opening = new SharedWork<Opened>();
  readonly #openings = new FairSemaphore(OPENINGS);
  readonly #sweeping: NodeJS.Timeout;
  #closed = false;

  constructor(
    cache: RepoCache,
    { now, readersMax = READERS_MAX }: { now: () => number; readersMax?: number },
  ) {
    this.#cache = cache;
    this.#now = now;
    this.#readersMax = readersMax;
    this.#sweeping = setInterval(() => this.sweep(), READER_IDLE_MS / 4);
    this.#sweeping.unref();
  }

  get size(): number {
    return this.#opened.size;
  }

  /** Returns a reader that finds every object in the packs of the manifest. */
  reader(repo: OpenedRepo, signal: AbortSignal): ObjectReader {
    const ask = async <T extends ObjectHead>(
      question: (process: ReadProcess) => Promise<T | undefined>,
    ): Promise<T | undefined> => {
      for (let tries = 1; ; tries++) {
        const opened = await this.#open(repo, signal);
        try {
          const found = await question(opened.process);
          if (found) return found;
          // If the view is complete, asks once more: the object may have been missing only while the cache was
          // emptied.
          if (await this.#cache.isIntact(opened.view, repo.manifest)) {
            return await question(opened.process);
          }
          // The cache was emptied, so only a new process can find out whether the object exists.
          this.#close(repo.id, opened);
        } catch (error) {
          const isIntact = await this.#cache.isIntact(opened.view, repo.manifest);
          // A new process can answer if this one has ended, or if another reader has closed it.
          if (isIntact && !(error instanceof ReadProcessGone)) throw error;
          this.#close(repo.id, opened);
        }
        if (tries >= TRIES_MAX) throw cacheEmptied();
      }
    };
    return {
      head: (name) => ask((process) => process.head(name)),
      read: (name) => ask((process) => process.read(name)),
    };
  }

  /** Opens a view in which git can run. The view has all packs of the manifest, and no refs. */
  async view(repo: OpenedRepo, signal: AbortSignal): Promise<HeldView> {
    const opened = await this.#openIntact(repo, signal);
    opened.holders += 1;
    const { cwd, environment } = opened.view;
    return {
      cwd,
      environment,
      isIntact: () => this.#cache.isIntact(opened.view, repo.manifest),
      [Symbol.dispose]: () => {
        opened.holders -= 1;
      },
    };
  }

  /** Runs `read` with a view from `view()`; see `readInView`. */
  inView<T>(
    repo: OpenedRepo,
    signal: AbortSignal,
    read: (view: HeldView) => Promise<T>,
    options: Omit<ReadOptions<T>, "signal"> = {},
  ): Promise<T> {
    return readInView(() => this.view(repo, signal), read, { ...options, signal });
  }

  /** Closes the unused processes that are too old, or that nobody has used for a while. */
  sweep(): void {
    const now = this.#now();
    for (const [id, opened] of this.#opened) {
      const isOld = now - opened.openedAt > READER_AGE_MS_MAX;
      const isIdle = now - opened.usedAt > READER_IDLE_MS;
      if (isFree(opened) && (isOld || isIdle)) this.#close(id, opened);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#sweeping);
    const ends = [...this.#opened.values()].map(({ process }) => process.exit);
    for (const [id, opened] of this.#opened) this.#close(id, opened);
    await Promise.all(ends);
  }

  async #openIntact(repo: OpenedRepo, signal: AbortSignal): Promise<Opened> {
    for (let tries = 1; tries <= TRIES_MAX; tries++) {
      const opened = await this.#open(repo, signal);
      if (await this.#cache.isIntact(opened.view, repo.manifest)) return opened;
      this.#close(repo.id, opened);
    }
    throw cacheEmptied();
  }

  async #open(repo: OpenedRepo, signal: AbortSignal): Promise<Opened> {
    for (;;) {
      signal.throwIfAborted();
      if (this.#closed) throw new ActorError("unavailable", "Cannot read: this gateway stops");
      const known = this.#opened.get(repo.id);
      const now = this.#now();
      if (known && serves(known, repo.manifest) && now - known.openedAt <= READER_AGE_MS_MAX) {
        known.usedAt = now;
        this.#opened.delete(repo.id);
        this.#opened.set(repo.id, known);
        return known;
      }
      const isJoined = this.#opening.has(repo.id);
      const opening = this.#opening.run(repo.id, signal, (shared) => this.#start(repo, shared));
      if (!isJoined) return await opening;
      // The other caller may have opened another version.
      await opening.catch(() => {});
    }
  }

  /**
   * Starts a process, or keeps the running process. A running process finds added packs, so it is kept if no objects
   * were removed.
   */
  async #start(repo: OpenedRepo, signal: AbortSignal): Promise<Opened> {
    const { manifest } = repo;
    const now = this.#now();
    const view = await this.#openView(repo, signal);
    const known = this.#opened.get(repo.id);
    const stays =
      known &&
      !known.process.ended &&
      known.generation === manifest.generation &&
      now - known.openedAt <= READER_AGE_MS_MAX &&
      view.madeId === known.view.madeId;
    const packs = manifest.packs.keys();
    if (stays) {
      await view[Symbol.asyncDispose]();
      // The cache keeps a pack that compaction has replaced for longer than the process runs.
      return Object.assign(known, { packs: known.packs.union(new Set(packs)), usedAt: now });
    }
    if (known) this.#close(repo.id, known);
    try {
      this.#makeRoom(repo.accountId);
    } catch (error) {
      await view[Symbol.asyncDispose]();
      throw error;
    }
    const opened: Opened = {
      accountId: repo.accountId,
      view,
      process: new ReadProcess(view),
      generation: manifest.generation,
      packs: new Set(packs),
      openedAt: now,
      usedAt: now,
      holders: 0,
    };
    this.#opened.set(repo.id, opened);
    void opened.process.exit.then(() => this.#close(repo.id, opened));
    return opened;
  }

  /** Opens the view of a repository. Its packs may have to be fetched, so accounts take turns. */
  async #openView(repo: OpenedRepo, signal: AbortSignal): Promise<RepoView> {
    const until = AbortSignal.any([signal, AbortSignal.timeout(READER_AGE_MS_MAX)]);
    const leave = await this.#openings.take(repo.accountId, until);
    try {
      // Fetches nothing for a process that would be refused.
      if (!this.#opened.has(repo.id)) this.#makeRoom(repo.accountId);
      return await this.#cache.openObjects(repo, repo.manifest, until);
    } finally {
      leave();
    }
  }

  /** Makes room for one more process of the account. Refuses with `busy` if that is not possible. */
  #makeRoom(accountId: string): void {
    const perAccount = Math.max(1, Math.floor(this.#readersMax * READERS_ACCOUNT_SHARE));
    if (!this.#closeUnused(perAccount, (opened) => opened.accountId === accountId)) {
      throw busy("too many repositories of this account are in use");
    }
    if (!this.#closeUnused(this.#readersMax, () => true)) {
      throw busy("too many repositories are in use");
    }
  }

  /**
   * Closes unused processes among the selected ones, the least recently used first, until fewer than `max` are left.
   * Returns whether fewer are left.
   */
  #closeUnused(max: number, isSelected: (opened: Opened) => boolean): boolean {
    const selected = [...this.#opened].filter(([, opened]) => isSelected(opened));
    let left = selected.length;
    for (const [id, opened] of selected) {
      if (left < max) break;
      if (!isFree(opened)) continue;
      this.#close(id, opened);
      left -= 1;
    }
    return left < max;
  }

  #close(id: string, opened: Opened): void {
    if (this.#opened.get(id) === opened) this.#opened.delete(id);
    opened.process.close();
    // If the marker of use cannot be removed now, it is removed with the repository's files.
    Promise.resolve(opened.view[Symbol.asyncDispose]()).catch(() => {});
  }
}

/** Returns whether a process can read all objects of a manifest: it runs, and it has all packs of the manifest. */
function serves({ process, generation, packs }: Opened, manifest: Manifest): boolean {
  if (process.ended || generation !== manifest.generation) return false;
  for (const sha256 of manifest.packs.keys()) if (!packs.has(sha256)) return false;
  return true;
}

function busy(reason: string): ActorError {
  return new ActorError("busy", `Cannot read: ${reason}; try again`, { retryAfterS: 1 });
}

const isFree = ({ process, holders }: Opened) => process.idle && holders === 0;

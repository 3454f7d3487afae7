/** Caches replies of actors until the actors publish a change, and at most for a limited time. */
import type { z } from "zod";
import type { LiveUpdates } from "../../actors/runtime/bus/live.ts";
import type { Contract, Messages } from "../../schemas/contract.ts";

/** The actor whose state a cached reply depends on. */
export interface Source {
  contract: Contract<Messages, z.ZodType>;
  key: string;
}

interface Entry<T> {
  value: T;
  at: number;
  watch: Watch;
}

/** The subscription to the changes of one actor. It ends when no cached reply and no load needs it. */
interface Watch {
  address: string;
  /** The names of the cached replies that depend on the actor. */
  names: Set<string>;
  /** The number of loads in progress. */
  loads: number;
  /** The number of notifications that have arrived. */
  heard: number;
  ready: Promise<boolean>;
  leave: AbortController;
}

interface WatchedCacheOptions {
  live: LiveUpdates;
  now: () => number;
  keptMs: number;
  entriesMax: number;
}

export class WatchedCache<T> {
  readonly #options: WatchedCacheOptions;
  /** Ordered by the time of loading, oldest first. */
  readonly #entries = new Map<string, Entry<T>>();
  readonly #watches = new Map<string, Watch>();

  constructor(options: WatchedCacheOptions) {
    this.#options = options;
  }

  /** Returns the cached reply of this name, or calls `load` when there is no fresh one. */
  async get(name: string, source: Source, load: () => Promise<T>): Promise<T> {
    const { now, keptMs } = this.#options;
    const known = this.#entries.get(name);
    if (known && now() - known.at < keptMs) return known.value;
    const watch = this.#watch(source);
    watch.loads += 1;
    try {
      this.#remove(name);
      // Wait until notifications arrive. If one arrives during the load, the loaded reply may be outdated and is not
      // cached.
      const isWatched = await watch.ready;
      const { heard } = watch;
      const at = now();
      const value = await load();
      const isCurrent = isWatched && heard === watch.heard && !watch.leave.signal.aborted;
      if (isCurrent) this.#keep(name, { value, at, watch });
      return value;
    } finally {
      watch.loads -= 1;
      this.#endUnused(watch);
    }
  }

  #keep(name: string, entry: Entry<T>): void {
    this.#remove(name);
    this.#entries.set(name, entry);
    entry.watch.names.add(name);
    if (this.#entries.size <= this.#options.entriesMax) return;
    for (const oldest of this.#entries.keys()) {
      this.#remove(oldest);
      return;
    }
  }

  #remove(name: string): void {
    const entry = this.#entries.get(name);
    if (!entry) return;
    this.#entries.delete(name);
    entry.watch.names.delete(name);
    this.#endUnused(entry.watch);
  }

  #watch({ contract, key }: Source): Watch {
    const address = `${contract.kind} ${key}`;
    const known = this.#watches.get(address);
    if (known) return known;
    const leave = new AbortController();
    const updates = this.#options.live.subscribe(contract, key, leave.signal);
    const watch: Watch = {
      ...{ address, names: new Set(), loads: 0, heard: 0, leave },
      // False if the subscription failed, for example without the bus. Then no notification can arrive, so nothing is
      // cached.
      ready: updates.then(
        () => true,
        () => false,
      ),
    };
    this.#watches.set(address, watch);
    void updates.then(
      async (heard) => {
        for await (const _update of heard) this.#drop(watch);
        this.#end(watch);
      },
      () => this.#end(watch),
    );
    return watch;
  }

  /** Drops all cached replies of an actor that has changed. */
  #drop(watch: Watch): void {
    watch.heard += 1;
    for (const name of watch.names) this.#entries.delete(name);
    watch.names.clear();
    this.#endUnused(watch);
  }

  /** Ends a subscription that nobody needs. Otherwise it would stay for ever, because eviction looks at replies only. */
  #endUnused({ names, loads, leave, address }: Watch): void {
    if (names.size > 0 || loads > 0 || leave.signal.aborted) return;
    leave.abort();
    this.#watches.delete(address);
  }

  /** Drops all cached replies of a source whose subscription has ended. */
  #end(watch: Watch): void {
    if (!watch.leave.signal.aborted) this.#watches.delete(watch.address);
    watch.leave.abort();
    this.#drop(watch);
  }
}

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
  source: string;
}

interface Watch {
  names: Set<string>;
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
    const address = `${source.contract.kind} ${source.key}`;
    const watch = this.#watch(address, source);
    watch.names.add(name);
    // Wait until notifications arrive. If one arrives during the load, the loaded reply may be outdated and is not
    // cached.
    const watched = await watch.ready;
    const { heard } = watch;
    try {
      const at = now();
      const value = await load();
      if (watched && heard === watch.heard) this.#keep(name, { value, at, source: address });
      else this.#forget(name, address);
      return value;
    } catch (error) {
      this.#forget(name, address);
      throw error;
    }
  }

  #keep(name: string, entry: Entry<T>): void {
    this.#entries.delete(name);
    this.#entries.set(name, entry);
    if (this.#entries.size <= this.#options.entriesMax) return;
    for (const [oldest, { source }] of this.#entries) {
      this.#forget(oldest, source);
      return;
    }
  }

  #forget(name: string, address: string): void {
    this.#entries.delete(name);
    const watch = this.#watches.get(address);
    watch?.names.delete(name);
    if (watch?.names.size !== 0) return;
    watch.leave.abort();
    this.#watches.delete(address);
  }

  #watch(address: string, { contract, key }: Source): Watch {
    const known = this.#watches.get(address);
    if (known) return known;
    const leave = new AbortController();
    const updates = this.#options.live.subscribe(contract, key, leave.signal);
    const watch: Watch = {
      names: new Set(),
      heard: 0,
      leave,
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
        this.#end(address, watch);
      },
      () => this.#end(address, watch),
    );
    return watch;
  }

  #drop(watch: Watch): void {
    watch.heard++;
    for (const name of watch.names) this.#entries.delete(name);
  }

  /** Drops all cached replies of a source whose subscription has ended. */
  #end(address: string, watch: Watch): void {
    this.#drop(watch);
    if (this.#watches.get(address) === watch) this.#watches.delete(address);
  }
}

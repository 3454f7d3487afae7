/** A stand-in for live updates, in memory, for tests of the gateway. */
import type { LiveUpdate, LiveUpdates } from "../../actors/runtime/bus/live.ts";

// biome-ignore lint/suspicious/noExplicitAny: the seam's types tie contract and value together; a Map of kinds cannot.
type AnyUpdate = LiveUpdate<any>;

export class MemoryLive implements LiveUpdates {
  readonly #watchers = new Map<string, Set<(update: AnyUpdate) => void>>();

  async subscribe(
    { kind }: { kind: string },
    key: string,
    signal: AbortSignal,
  ): Promise<AsyncIterable<AnyUpdate>> {
    const watchers = this.#watchers.get(`${kind}.${key}`) ?? new Set();
    this.#watchers.set(`${kind}.${key}`, watchers);
    const waiting: AnyUpdate[] = [];
    let changed = Promise.withResolvers<void>();
    const watcher = (update: AnyUpdate) => {
      waiting.push(update);
      changed.resolve();
    };
    watchers.add(watcher);
    signal.addEventListener("abort", () => {
      watchers.delete(watcher);
      changed.resolve();
    });
    return (async function* () {
      while (!signal.aborted) {
        await changed.promise;
        changed = Promise.withResolvers();
        yield* waiting.splice(0);
      }
    })();
  }

  show(kind: string, key: string, value: unknown): void {
    this.#tell(kind, key, { value });
  }

  miss(kind: string, key: string): void {
    this.#tell(kind, key, { missed: true });
  }

  /** Watchers that have not ended. */
  get watchers(): number {
    return [...this.#watchers.values()].reduce((sum, { size }) => sum + size, 0);
  }

  #tell(kind: string, key: string, update: AnyUpdate): void {
    for (const tell of this.#watchers.get(`${kind}.${key}`) ?? []) tell(update);
  }
}

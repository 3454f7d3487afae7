/** Live subjects in memory. For tests of the gateway. */
import type { LiveSource } from "../live-source.ts";

export class MemoryLive implements LiveSource {
  readonly #listeners = new Map<string, Set<(message: unknown) => void>>();

  subscribe(kind: string, key: string, listener: (message: unknown) => void): () => void {
    const listeners = this.#listeners.get(`${kind}.${key}`) ?? new Set();
    this.#listeners.set(`${kind}.${key}`, listeners.add(listener));
    return () => listeners.delete(listener);
  }

  say(kind: string, key: string, message: unknown): void {
    for (const listener of this.#listeners.get(`${kind}.${key}`) ?? []) listener(message);
  }

  /** Listeners that have not ended. */
  get listeners(): number {
    return [...this.#listeners.values()].reduce((sum, { size }) => sum + size, 0);
  }
}

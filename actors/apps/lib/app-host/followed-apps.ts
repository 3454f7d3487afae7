/**
 * Caches the serving versions of this host's apps. Subscribers are notified as soon as a version changes or may have
 * changed.
 */
import { app, type ServingApp } from "../../../../schemas/apps/app.ts";
import { APP_SERVING_KEPT_MS } from "../../../../schemas/apps/limits.ts";
import type { LiveUpdates } from "../../../runtime/bus/live.ts";
import type { ActorClient } from "../../../runtime/calls/actor-client.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";

interface FollowedAppsParts {
  actors: Pick<ActorClient, "call">;
  live: LiveUpdates;
  clock: Clock;
}

interface Kept {
  /** The newest request for the serving version. */
  serving: Promise<ServingApp>;
  askedAt: number;
}

export class FollowedApps {
  readonly #parts: FollowedAppsParts;
  readonly #kept = new Map<string, Kept>();
  readonly #watched = new Map<string, AbortController>();

  constructor(parts: FollowedAppsParts) {
    this.#parts = parts;
  }

  /**
   * Returns the serving version. Rejects with `not_found` if no version serves, and with errors of the app's actor.
   */
  get(key: string): Promise<ServingApp> {
    const kept = this.#kept.get(key);
    const now = this.#parts.clock.monotonic();
    if (kept && now - kept.askedAt < APP_SERVING_KEPT_MS) return kept.serving;
    const serving = this.#parts.actors.call(app, key, "getServing", {});
    const asked = { serving, askedAt: now };
    this.#kept.set(key, asked);
    // Refusals are not cached, because the app may be deployed at any moment.
    serving.catch(() => {
      if (this.#kept.get(key) === asked) this.#kept.delete(key);
    });
    return serving;
  }

  /** Number of apps whose changes this host follows. */
  get watched(): number {
    return this.#watched.size;
  }

  /**
   * Until `unwatch`: whenever the serving version changes or may have changed, drops the cached version and calls
   * `changed`.
   */
  watch(key: string, changed: () => void): void {
    if (this.#watched.has(key)) return;
    const ended = new AbortController();
    this.#watched.set(key, ended);
    void this.#follow(key, ended.signal, () => {
      this.#kept.delete(key);
      changed();
    });
  }

  unwatch(key: string): void {
    this.#watched.get(key)?.abort();
    this.#watched.delete(key);
    this.#kept.delete(key);
  }

  async #follow(key: string, signal: AbortSignal, changed: () => void): Promise<void> {
    const { clock, live } = this.#parts;
    while (!signal.aborted) {
      try {
        const updates = await live.subscribe(app, key, signal);
        changed();
        for await (const _ of updates) changed();
      } catch {
        // While the bus is disconnected, a cached version is used until it expires.
      }
      await clock.wait(APP_SERVING_KEPT_MS, signal);
    }
  }
}

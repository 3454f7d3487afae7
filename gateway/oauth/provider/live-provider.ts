/**
 * Holds the current keys of the authorization server, and an instance of oidc-provider with these keys. The first
 * request for an endpoint of OAuth loads oidc-provider, which takes 10 MB of memory.
 */
import type { Provider } from "oidc-provider";
import type { LiveUpdates } from "../../../actors/runtime/bus/live.ts";
import { OAUTH_KEYS_KEY, oauthKeys } from "../../../schemas/oauth/oauth-keys.ts";
import type { ProviderParts } from "./provider-parts.ts";
import { loadKeys, type ServerKeys } from "./signing-keys.ts";

/** Age after which a request makes the gateway reload the keys, in case the gateway has missed a live update. */
export const KEYS_CHECK_MS = 5 * 60_000;

interface Current {
  /** Undefined until a request needs it. */
  provider: Promise<Provider> | undefined;
  keys: ServerKeys;
  loadedAt: number;
}

interface LiveProviderParts extends ProviderParts {
  live: LiveUpdates;
  stopping: AbortSignal;
}

export class LiveProvider {
  readonly #parts: LiveProviderParts;
  #current: Current | undefined;
  #loading: Promise<Current> | undefined;
  #watching = false;

  constructor(parts: LiveProviderParts) {
    this.#parts = parts;
  }

  async provider(): Promise<Provider> {
    const current = await this.#hold();
    current.provider ??= this.#make(current.keys).catch((error: unknown) => {
      current.provider = undefined;
      throw error;
    });
    return await current.provider;
  }

  async secret(): Promise<string> {
    return (await this.#hold()).keys.secret;
  }

  async #hold(): Promise<Current> {
    const current = this.#current;
    if (current && this.#parts.now() - current.loadedAt < KEYS_CHECK_MS) return current;
    this.#loading ??= this.#load().finally(() => {
      this.#loading = undefined;
    });
    if (!current) return this.#loading;
    // The old keys stay in use while the new ones load, and if loading fails.
    this.#loading.catch((error: unknown) => {
      this.#parts.logger.warn({ err: error }, "signing keys not checked");
    });
    return current;
  }

  async #load(): Promise<Current> {
    const { live, stopping, now, actors } = this.#parts;
    if (!this.#watching && !stopping.aborted) {
      const changes = await live.subscribe(oauthKeys, OAUTH_KEYS_KEY, stopping);
      this.#watching = true;
      void this.#watch(changes);
    }
    const loadedAt = now();
    const keys = await loadKeys(actors, loadedAt);
    const same = JSON.stringify(keys) === JSON.stringify(this.#current?.keys);
    const provider = same ? this.#current?.provider : undefined;
    this.#current = { provider, keys, loadedAt };
    return this.#current;
  }

  async #make(keys: ServerKeys): Promise<Provider> {
    const { makeProvider } = await import("./make-provider.ts");
    return makeProvider(this.#parts, keys);
  }

  async #watch(changes: AsyncIterable<unknown>): Promise<void> {
    for await (const _change of changes) {
      if (this.#current) this.#current.loadedAt = Number.NEGATIVE_INFINITY;
    }
    this.#watching = false;
  }
}

/** Caches the serving versions of apps for this gateway, for a limited time and only while nothing changes. */
import type { SecretBox } from "../../actors/apps/lib/app-secrets/secret-box.ts";
import type { LiveUpdates } from "../../actors/runtime/bus/live.ts";
import type { ActorClient } from "../../actors/runtime/calls/actor-client.ts";
import { app as contract, type ServingApp } from "../../schemas/apps/app.ts";
import { appKey } from "../../schemas/apps/app-names.ts";
import { APP_SERVING_KEPT_MS } from "../../schemas/apps/limits.ts";
import type { AppOf } from "../http/locals.ts";
import { WatchedCache } from "../http/watched-cache.ts";

/** Limit of the apps that a gateway caches, each for APP_SERVING_KEPT_MS. */
const SERVING_APPS_KEPT_MAX = 1_000;

interface ServingAppsParts {
  actors: Pick<ActorClient, "call">;
  live: LiveUpdates;
  now: () => number;
  secrets: Pick<SecretBox, "open">;
}

export class ServingApps {
  readonly #parts: ServingAppsParts;
  readonly #known: WatchedCache<ServingApp>;
  /**
   * Opened secrets by name, cached with the serving version, because opening a secret takes as long as checking a
   * signature.
   */
  readonly #opened = new WeakMap<ServingApp, Map<string, string>>();

  constructor(parts: ServingAppsParts) {
    this.#parts = parts;
    const { live, now } = parts;
    this.#known = new WatchedCache({
      ...{ live, now },
      keptMs: APP_SERVING_KEPT_MS,
      entriesMax: SERVING_APPS_KEPT_MAX,
    });
  }

  /** Rejects with `not_found` if the app does not exist or no version of it serves. */
  async get({ accountId, app }: AppOf): Promise<ServingApp> {
    const key = appKey(accountId, app);
    return this.#known.get(key, { contract, key }, () =>
      this.#parts.actors.call(contract, key, "getServing", {}),
    );
  }

  /**
   * Returns the value of one of the app's secrets. Throws SecretKeyError if this gateway does not have the key that
   * sealed it.
   */
  secretOf({ accountId, app }: AppOf, serving: ServingApp, name: string): string | undefined {
    const known = this.#opened.get(serving)?.get(name);
    if (known !== undefined) return known;
    const sealed = serving.secrets.find((secret) => secret.name === name)?.sealed;
    if (sealed === undefined) return undefined;
    const value = this.#parts.secrets.open(sealed, { accountId, app, name });
    const opened = this.#opened.get(serving) ?? new Map<string, string>();
    this.#opened.set(serving, opened.set(name, value));
    return value;
  }
}

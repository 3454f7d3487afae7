/** Caches logos of clients for a moment, because anybody may request one at any rate, and each comes from an actor. */
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { clientLogo, type Logo } from "../../../schemas/oauth/client-logo.ts";

/** Time for which a logo is served after its client was deleted or got another logo. */
export const LOGO_KEPT_MS = 2_000;
/** Limits the cached logos: 4 MB. */
export const LOGOS_KEPT_MAX = 32;

interface Picture {
  type: Logo["type"];
  bytes: Buffer;
}

export class RecentLogos {
  readonly #actors: ActorClient;
  readonly #now: () => number;
  /** The oldest is first. */
  readonly #kept = new Map<string, { at: number; picture: Picture }>();
  /** The logos that are on their way. Most of a flood of requests name logos that do not exist. */
  readonly #loads = new Map<string, Promise<Picture>>();

  constructor(actors: ActorClient, now = () => performance.now()) {
    this.#actors = actors;
    this.#now = now;
  }

  /** Resolves to the client's logo with this hash. Refuses as `not_found` if there is none. */
  async read(clientId: string, hash: string): Promise<Picture> {
    const name = `${clientId} ${hash}`;
    const known = this.#kept.get(name);
    if (known && this.#now() - known.at < LOGO_KEPT_MS) return known.picture;
    const load = this.#loads.get(name) ?? this.#load(name, { clientId, hash });
    return await load;
  }

  #load(name: string, { clientId, hash }: { clientId: string; hash: string }): Promise<Picture> {
    const at = this.#now();
    const load = this.#actors
      .call(clientLogo, clientId, "read", { hash })
      .then(({ type, base64 }) =>
        this.#keep(name, at, { type, bytes: Buffer.from(base64, "base64") }),
      )
      .finally(() => this.#loads.delete(name));
    this.#loads.set(name, load);
    return load;
  }

  #keep(name: string, at: number, picture: Picture): Picture {
    this.#kept.delete(name);
    this.#kept.set(name, { at, picture });
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= LOGOS_KEPT_MAX) break;
      this.#kept.delete(oldest);
    }
    return picture;
  }
}

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
  readonly #kept = new Map<string, { at: number; picture: Promise<Picture> }>();

  constructor(actors: ActorClient, now = () => performance.now()) {
    this.#actors = actors;
    this.#now = now;
  }

  /** Resolves to the client's logo with this hash. Refuses as `not_found` if there is none. */
  read(clientId: string, hash: string): Promise<Picture> {
    const name = `${clientId} ${hash}`;
    const known = this.#kept.get(name);
    const at = this.#now();
    if (known && at - known.at < LOGO_KEPT_MS) return known.picture;
    const picture = this.#load(clientId, hash);
    this.#kept.delete(name);
    this.#kept.set(name, { at, picture });
    picture.catch(() => {
      if (this.#kept.get(name)?.picture === picture) this.#kept.delete(name);
    });
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= LOGOS_KEPT_MAX) break;
      this.#kept.delete(oldest);
    }
    return picture;
  }

  async #load(clientId: string, hash: string): Promise<Picture> {
    const { type, base64 } = await this.#actors.call(clientLogo, clientId, "read", { hash });
    return { type, bytes: Buffer.from(base64, "base64") };
  }
}

/** Finds the id of a repository by its name. The repository itself checks a remembered id at every use. */
import type { ActorClient } from "../../actors/runtime/calls/actor-client.ts";
import { ActorError } from "../../schemas/errors.ts";
import { folded, namespaceKey } from "../../schemas/repositories/git-names.ts";
import { GIT_NAMES_KEPT } from "../../schemas/repositories/limits.ts";
import { namespace } from "../../schemas/repositories/namespace.ts";
import type { RepoAddress } from "../../schemas/repositories/repo.ts";

export class RepoFinder {
  readonly #actors: ActorClient;
  /** Repository ids by name. The id that was found longest ago is first. */
  readonly #ids = new Map<string, string>();

  constructor(actors: ActorClient) {
    this.#actors = actors;
  }

  /**
   * Calls `use` with the repository's id. If a remembered id no longer belongs to this name, finds the new id and
   * calls `use` again.
   */
  async with<T>(
    address: RepoAddress,
    signal: AbortSignal,
    use: (id: string) => Promise<T>,
  ): Promise<T> {
    const place = `${namespaceKey(address.accountId, address.namespace)}/${folded(address.name)}`;
    const known = this.#ids.get(place);
    if (known !== undefined) {
      try {
        return await use(known);
      } catch (error) {
        if (!(error instanceof ActorError) || error.code !== "not_found") throw error;
        this.#ids.delete(place);
      }
    }
    const key = namespaceKey(address.accountId, address.namespace);
    const { id } = await this.#actors.call(
      namespace,
      key,
      "find",
      { name: address.name },
      { signal },
    );
    const used = await use(id);
    this.#ids.delete(place);
    this.#ids.set(place, id);
    if (this.#ids.size > GIT_NAMES_KEPT) {
      for (const oldest of this.#ids.keys()) {
        this.#ids.delete(oldest);
        break;
      }
    }
    return used;
  }
}

/**
 * Recognizes copies of calls that arrive after their client has settled the calls. Nobody waits for answers to such
 * copies.
 */
import { EFFECTLESS_CLIENTS_MAX } from "../../../schemas/limits.ts";
import type { IncomingCall } from "../shards/incoming.ts";

export class SettledCalls {
  /** By client: the client no longer waits for its calls below this number. */
  readonly #below = new Map<string, number>();

  /** True for a call that its client has settled. */
  isEcho({ id }: Pick<IncomingCall, "id">): boolean {
    if (!id) return false;
    const known = this.#below.get(id.client) ?? 0;
    if (id.number < known) return true;
    if (this.#below.size >= EFFECTLESS_CLIENTS_MAX) this.#below.clear();
    if (id.settled > known) this.#below.set(id.client, id.settled);
    return false;
  }
}

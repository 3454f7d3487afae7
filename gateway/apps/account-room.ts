/**
 * Checks whether an account's agents may store more data. The check uses cached numbers, because events arrive too
 * often for one call each.
 */
import type { ActorClient } from "../../actors/runtime/calls/actor-client.ts";
import { type AgentLimits, appUsage, noRoom } from "../../schemas/apps/app-usage.ts";

/**
 * Time for which a gateway caches the number of bytes that an account's agents store. The limit below is for the
 * number of cached accounts.
 */
export const APP_USAGE_KEPT_MS = 5_000;
export const ACCOUNTS_KEPT_MAX = 1_000;

interface AccountRoomParts {
  actors: Pick<ActorClient, "call">;
  limits: AgentLimits;
  now: () => number;
}

interface Known {
  bytes: Promise<number>;
  at: number;
}

export class AccountRoom {
  readonly #parts: AccountRoomParts;
  /** The entry that was refreshed last is the last one. */
  readonly #known = new Map<string, Known>();

  constructor(parts: AccountRoomParts) {
    this.#parts = parts;
  }

  /** Rejects with `limit_reached` if the account has no room left. */
  async check(accountId: string): Promise<void> {
    const { limits } = this.#parts;
    if (limits.bytes > 0 && (await this.#bytesOf(accountId)) >= limits.bytes) {
      throw noRoom(limits.bytes);
    }
  }

  #bytesOf(accountId: string): Promise<number> {
    const { now } = this.#parts;
    const known = this.#known.get(accountId);
    if (known && now() - known.at < APP_USAGE_KEPT_MS) return known.bytes;
    const asked = { bytes: this.#ask(accountId), at: now() };
    this.#known.delete(accountId);
    this.#known.set(accountId, asked);
    const [oldest] = this.#known.keys();
    if (this.#known.size > ACCOUNTS_KEPT_MAX && oldest !== undefined) this.#known.delete(oldest);
    return asked.bytes;
  }

  async #ask(accountId: string): Promise<number> {
    try {
      return (await this.#parts.actors.call(appUsage, accountId, "get", {})).bytes;
    } catch {
      // If the usage is unknown, the event is accepted rather than lost. Its bytes are counted later.
      return 0;
    }
  }
}

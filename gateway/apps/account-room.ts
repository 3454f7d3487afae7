/** Whether an account's agents may keep more, as it was a moment ago: events come too often to ask for each. */
import type { ActorClient } from "../../actors/runtime/calls/actor-client.ts";
import { type AgentLimits, appUsage, noRoom } from "../../schemas/apps/app-usage.ts";

/** How long a gateway goes by what an account's agents kept, and of how many accounts it knows that. */
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
  /** The one that was asked for anew last is last. */
  readonly #known = new Map<string, Known>();

  constructor(parts: AccountRoomParts) {
    this.#parts = parts;
  }

  /** Rejects with `limit_reached` where there is no room. */
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
      // An event is not lost because nobody can say what is kept: it is counted later.
      return 0;
    }
  }
}

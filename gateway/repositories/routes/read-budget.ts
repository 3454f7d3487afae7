/** Limits the bytes of objects that all responses of one gateway hold in memory, with a share for each account. */
import type { Writable } from "node:stream";
import { ActorError } from "../../../schemas/errors.ts";
import { BYTES_ACCOUNT_SHARE } from "../../../schemas/memory-limits.ts";
import { ByteBudget, type HeldBytes } from "../../http/byte-budget.ts";

export class ReadBudget {
  readonly #budget: ByteBudget;
  readonly #held = new WeakMap<object, HeldBytes>();

  constructor(bytesMax: number) {
    this.#budget = new ByteBudget({ bytesMax, shares: [BYTES_ACCOUNT_SHARE], refusal: tooMany });
  }

  get bytes(): number {
    return this.#budget.bytes;
  }

  /**
   * Reserves bytes until the client has received its response or has disconnected. Throws ActorError `busy` past a
   * limit, unless the account reserves no other bytes and they fit beside those of others.
   */
  hold(bytes: number, accountId: string, response: Pick<Writable, "destroyed" | "once">): void {
    if (response.destroyed) return;
    const earlier = this.#held.get(response);
    const held = earlier ?? this.#budget.open([accountId]);
    held.take(bytes);
    // Listens only once for each response, although a log reserves bytes for each of its commits.
    if (earlier) return;
    this.#held.set(response, held);
    response.once("close", held.release);
  }
}

const tooMany = () =>
  new ActorError("busy", "Cannot read: too many large reads are in progress; try again", {
    retryAfterS: 1,
  });

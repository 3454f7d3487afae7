/** Limits the bytes of objects that all responses of one gateway hold in memory. */
import type { Writable } from "node:stream";
import { ActorError } from "../../../schemas/errors.ts";

export class HeldBytes {
  readonly #bytesMax: number;
  readonly #held = new Map<object, number>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Reserves bytes until the client has received its response or has disconnected. Throws ActorError `busy` past the
   * limit, unless no other bytes are reserved.
   */
  hold(bytes: number, response: Pick<Writable, "destroyed" | "once">): void {
    if (this.#bytes > 0 && this.#bytes + bytes > this.#bytesMax) {
      const text = "Cannot read: too many large reads are in progress; try again";
      throw new ActorError("busy", text, { retryAfterS: 1 });
    }
    if (response.destroyed) return;
    this.#bytes += bytes;
    const earlier = this.#held.get(response);
    this.#held.set(response, (earlier ?? 0) + bytes);
    // Listens only once for each response, although a log reserves bytes for each of its commits.
    if (earlier !== undefined) return;
    response.once("close", () => {
      this.#bytes -= this.#held.get(response) ?? 0;
      this.#held.delete(response);
    });
  }
}

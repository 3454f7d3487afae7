/** Reads the body of a push: counts the bytes that are in memory, and discards the rest of a refused push. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Readable } from "node:stream";
import { PUSH_HEAD_BYTES_MAX } from "../../../schemas/repositories/limits.ts";
import type { HeldBytes } from "../../http/byte-budget.ts";
import type { GitParts } from "../git-parts.ts";
import { cutOff, gitBody } from "./git-body.ts";
import { PktReader } from "./pkt-line.ts";

export class PushBody implements Disposable {
  readonly reader: PktReader;
  readonly #body: Readable;
  /** The bytes that are read before the push has a slot. Most of them stay in memory until the push is over. */
  readonly #held: HeldBytes;
  readonly #discarded = Promise.withResolvers<void>();
  #isCounted = true;
  #mayReadWhole = false;

  constructor(
    { bodies, pushDiscards, sizes }: Pick<GitParts, "bodies" | "pushDiscards" | "sizes">,
    accountId: string,
    { request, response }: { request: IncomingMessage; response: ServerResponse },
  ) {
    this.#body = gitBody(request, {
      bytesMax: PUSH_HEAD_BYTES_MAX + sizes.repoBytes,
      discarding: {
        bytesMax: pushDiscards.bytesMax,
        more: () => (this.#mayReadWhole ? pushDiscards.enter(accountId) : undefined),
        signal: pushDiscards.stopping,
        ended: () => {
          this.#discarded.resolve();
          if (response.writableFinished) cutOff(request);
          else response.once("finish", () => cutOff(request));
        },
      },
    });
    this.#held = bodies.open([accountId]);
    this.reader = new PktReader(this.#counted());
  }

  /** Called when the push has a slot. From then on the rest of its pack is not held in memory. */
  entered(): void {
    this.#isCounted = false;
  }

  /**
   * Reads and discards the rest of the pack. Resolves when it is complete, or when no more of it is read. `isWhole`
   * permits to read any pack to its end, if the account has not too many of them. The bytes that were read before count
   * until the end, because the report needs the commands.
   */
  discard(isWhole: boolean): Promise<void> {
    this.#mayReadWhole = isWhole;
    this.reader.drop();
    this.#body.destroy();
    return this.#discarded.promise;
  }

  /** Ends the read. If the push was refused early, the rest of its body is only discarded. */
  [Symbol.dispose](): void {
    this.#body.destroy();
    this.#held.release();
  }

  async *#counted(): AsyncGenerator<Buffer, void, undefined> {
    for await (const chunk of this.#body) {
      if (this.#isCounted) this.#held.take(chunk.length);
      yield chunk;
    }
  }
}

/** Writes an answer that comes in chunks, no faster than the client reads. */
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { ANSWER_STALL_MS } from "../schemas/limits.ts";

/** The status goes out with the first chunk, so until then a refusal still can. Destroys the response of a client that stops reading. */
export async function writeAnswer(
  chunks: AsyncIterable<Uint8Array>,
  response: ServerResponse,
  {
    bytes,
    signal,
    stallMs = ANSWER_STALL_MS,
  }: { bytes: number | null; signal: AbortSignal; stallMs?: number },
): Promise<void> {
  response.on("timeout", () => response.destroy());
  const iterator = chunks[Symbol.asyncIterator]();
  let written = 0;
  try {
    let { done, value } = await iterator.next();
    while (!done) {
      signal.throwIfAborted();
      written += value.length;
      // A client that has every byte it was promised may leave at once: that is the end, and no hang-up.
      if (written === bytes) end(value);
      const next = iterator.next();
      if (written !== bytes && !response.write(value)) await drained(next);
      ({ done, value } = await next);
    }
    if (!response.writableEnded) end();
  } finally {
    await iterator.return?.();
  }

  /** Rejects as soon as there is nothing more to wait for: the client left, or what makes the chunks broke off. */
  async function drained(next: Promise<unknown>): Promise<void> {
    // The socket's own clock, which starts again with every byte that the client takes.
    response.setTimeout(stallMs);
    const drain = once(response, "drain", { signal });
    await Promise.race([drain, next.then(() => drain)]);
    response.setTimeout(0);
  }

  function end(last?: Uint8Array): void {
    response.setTimeout(stallMs);
    response.end(last);
  }
}

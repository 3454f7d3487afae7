/** Writes an answer in chunks, not faster than the client reads. */
import type { ServerResponse } from "node:http";
import { AnswerPace, type AnswerPaceLimits } from "./answer-pace.ts";

/**
 * Sends the status with the first chunk, so that an error before it can still become a refusal. Destroys the response
 * if the client reads too slowly.
 */
export async function writeAnswer(
  chunks: AsyncIterable<Uint8Array>,
  response: ServerResponse,
  {
    bytes,
    signal,
    ...pace
  }: { bytes: number | null; signal: AbortSignal } & Partial<AnswerPaceLimits>,
): Promise<void> {
  const paced = new AnswerPace(response, pace);
  const iterator = chunks[Symbol.asyncIterator]();
  let written = 0;
  try {
    let { done, value } = await iterator.next();
    while (!done) {
      signal.throwIfAborted();
      written += value.length;
      // End the answer together with its last byte. The client may close the connection when it has the last byte;
      // that does not count as an abort.
      if (written === bytes) await paced.end(signal, value);
      const next = iterator.next();
      // `write` also rejects if the source fails to produce the next chunk.
      if (written !== bytes) await paced.write(value, signal, next);
      ({ done, value } = await next);
    }
    if (!response.writableEnded) await paced.end(signal);
  } finally {
    await iterator.return?.();
  }
}

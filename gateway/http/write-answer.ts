/** Writes an answer in chunks, no faster than the client reads. */
import type { ServerResponse } from "node:http";
import { AnswerPace, type AnswerPaceLimits } from "./answer-pace.ts";

/**
 * Sends the status with the first chunk, so that errors before it still become refusals. Destroys the response of a
 * client that reads too slowly.
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
      // A client may close the connection as soon as it has the last byte. That is no abort.
      if (written === bytes) await paced.end(signal, value);
      const next = iterator.next();
      // The source of the chunks failed, so no more will come.
      if (written !== bytes) await paced.write(value, signal, next);
      ({ done, value } = await next);
    }
    if (!response.writableEnded) await paced.end(signal);
  } finally {
    await iterator.return?.();
  }
}

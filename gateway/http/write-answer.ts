/** Writes an answer that comes in chunks, no faster than the client reads. */
import type { ServerResponse } from "node:http";
import { AnswerPace, type AnswerPaceLimits } from "./answer-pace.ts";

/** The status goes out with the first chunk, so until then a refusal still can. Destroys the response of a client that reads too slowly. */
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
      // A client that has every byte it was promised may leave at once: that is the end, and no hang-up.
      if (written === bytes) await paced.end(signal, value);
      const next = iterator.next();
      // Where what makes the chunks breaks off there is nothing more to wait for.
      if (written !== bytes) await paced.write(value, signal, next);
      ({ done, value } = await next);
    }
    if (!response.writableEnded) await paced.end(signal);
  } finally {
    await iterator.return?.();
  }
}

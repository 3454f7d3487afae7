/** Reads the body of a request as bytes, unchanged. */
import type { Readable } from "node:stream";
import { ActorError } from "../../schemas/errors.ts";

/**
 * Reads a whole body. `take` is called with the size of each part, and refuses the body by throwing. Rejects with
 * `cancelled` if the sender leaves.
 */
export async function readBytes(body: Readable, take: (bytes: number) => void): Promise<Buffer> {
  const chunks: Buffer[] = [];
  const { promise: whole, resolve, reject } = Promise.withResolvers<void>();
  const read = (chunk: Buffer) => {
    try {
      take(chunk.length);
      chunks.push(chunk);
    } catch (error) {
      refuse(error);
    }
  };
  const refuse = (error: unknown) => {
    // Stops reading but keeps the connection open, because a refusal is answered over the connection of the request.
    body.off("data", read).pause();
    reject(error);
  };
  const leave = () => refuse(new ActorError("cancelled", "Cannot read body: its sender left"));
  const end = () => {
    // The "close" event of a fully read request does not mean that the sender left.
    body.off("close", leave);
    resolve();
  };
  if (body.destroyed) leave();
  // Uses events instead of the stream's iterator: for a small body, the iterator takes longer than the check of the
  // signature of a webhook.
  else body.on("data", read).once("end", end).once("error", leave).once("close", leave);
  await whole;
  return Buffer.concat(chunks);
}

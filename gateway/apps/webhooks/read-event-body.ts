/**
 * Reads the body of an event unchanged, up to its limit. Also limits the bytes of all bodies that one gateway holds
 * at the same time.
 */
import type { Readable } from "node:stream";
import type { HeaderList } from "../../../schemas/apps/app-exchange.ts";
import { ActorError } from "../../../schemas/errors.ts";

/** Limit of the bytes of event bodies that one gateway holds: about fifty bodies of the largest size. */
const WEBHOOK_BODIES_BYTES_MAX = 256 * 1024 * 1024;

/** Bytes of all events that are being read or stored. */
export interface HeldBodies {
  bytes: number;
}

/** Reads a body. Its bytes count toward the limit until the caller disposes of the result. */
export async function readEventBody(
  { headers, body }: { headers: HeaderList; body: Readable },
  { held, bytesMax }: { held: HeldBodies; bytesMax: number },
): Promise<Disposable & { bytes: Buffer }> {
  const declared = Number(headers.find(([name]) => name === "content-length")?.[1] ?? 0);
  if (declared > bytesMax) throw tooLarge(bytesMax);
  let bytes = 0;
  const chunks: Buffer[] = [];
  const release = () => {
    held.bytes -= bytes;
    bytes = 0;
  };
  const { promise: whole, resolve, reject } = Promise.withResolvers<void>();
  const take = (chunk: Buffer) => {
    if (bytes + chunk.length > bytesMax) return refuse(tooLarge(bytesMax));
    if (held.bytes + chunk.length > WEBHOOK_BODIES_BYTES_MAX) return refuse(tooMany());
    bytes += chunk.length;
    held.bytes += chunk.length;
    chunks.push(chunk);
  };
  const refuse = (error: ActorError) => {
    // Stops reading but keeps the connection open, because a refusal is answered over the connection of the request.
    body.off("data", take).pause();
    release();
    reject(error);
  };
  const leave = () => refuse(new ActorError("cancelled", "Cannot read event: its sender left"));
  const end = () => {
    // The "close" event of a fully read request does not mean that the sender left.
    body.off("close", leave);
    resolve();
  };
  if (body.destroyed) leave();
  // Uses events instead of the stream's iterator: for a small body, the iterator takes longer than the check of the
  // signature.
  else body.on("data", take).once("end", end).once("error", leave).once("close", leave);
  await whole;
  return { bytes: Buffer.concat(chunks), [Symbol.dispose]: release };
}

const tooLarge = (bytesMax: number) =>
  new ActorError("body_too_large", `Cannot read event: expected at most ${bytesMax} bytes`);

const tooMany = () =>
  new ActorError(
    "queue_full",
    "Cannot read event: too many large uploads are in progress; try again",
    {
      retryAfterS: 1,
    },
  );

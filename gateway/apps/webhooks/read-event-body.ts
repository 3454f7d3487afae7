/**
 * Reads the body of an event as it came, up to its bound, and no more of them at once than a gateway is meant to
 * hold.
 */
import type { Readable } from "node:stream";
import type { HeaderList } from "../../../schemas/apps/app-exchange.ts";
import { ActorError } from "../../../schemas/errors.ts";

/** Bodies of events on their way through one gateway: some fifty of the largest. */
const WEBHOOK_BODIES_BYTES_MAX = 256 * 1024 * 1024;

/** Bytes of all events that are being read or stored. */
export interface HeldBodies {
  bytes: number;
}

/** The bytes of the body count until the body is disposed of. */
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
    // A refusal is answered over the connection of the request, which therefore outlives the reading.
    body.off("data", take).pause();
    release();
    reject(error);
  };
  const leave = () => refuse(new ActorError("cancelled", "Cannot read event: its sender left"));
  const end = () => {
    // A request that is read is closed.
    body.off("close", leave);
    resolve();
  };
  if (body.destroyed) leave();
  // Not by its iterator: for a small body that takes longer than to verify it.
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

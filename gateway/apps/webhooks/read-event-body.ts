/**
 * Reads the body of an event unchanged, up to its limit. Also limits the bytes of all bodies that one gateway holds
 * at the same time.
 */
import type { Readable } from "node:stream";
import type { HeaderList } from "../../../schemas/apps/app-exchange.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { readBytes } from "../../http/read-bytes.ts";

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
  const release = () => {
    held.bytes -= bytes;
    bytes = 0;
  };
  try {
    const whole = await readBytes(body, (more) => {
      if (bytes + more > bytesMax) throw tooLarge(bytesMax);
      if (held.bytes + more > WEBHOOK_BODIES_BYTES_MAX) throw tooMany();
      bytes += more;
      held.bytes += more;
    });
    return { bytes: whole, [Symbol.dispose]: release };
  } catch (error) {
    release();
    throw error;
  }
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

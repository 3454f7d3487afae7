/** The body of a request as git sends it: perhaps packed, perhaps in chunks, and never more than its bound of either. */
import type { IncomingMessage } from "node:http";
import { type Readable, Transform } from "node:stream";
import { createGunzip, createInflate } from "node:zlib";
import { ActorError } from "../../schemas/errors.ts";
import { GIT_BODY_STALL_MS } from "../../schemas/git-limits.ts";

/** Ends with ActorError where there is too much of it, nothing comes for a while, or it cannot be unpacked. */
export function gitBody(
  request: IncomingMessage,
  { bytesMax, stallMs = GIT_BODY_STALL_MS }: { bytesMax: number; stallMs?: number },
): Readable {
  const unpacking = unpackerOf(request);
  const counted = countedTo(bytesMax, stallMs);
  // One error is enough, and it goes to who reads; whoever reads has left where there is none.
  const fail = (error: Error) => counted.destroy(error);
  request.once("aborted", () => fail(clientLeft()));
  request.once("error", () => fail(clientLeft()));
  counted.once("close", () => {
    request.unpipe();
    unpacking?.destroy();
  });
  if (!unpacking) return request.pipe(counted);
  unpacking.once("error", () =>
    fail(new ActorError("invalid_request", "Cannot read body: it cannot be unpacked")),
  );
  return request.pipe(unpacking).pipe(counted);
}

/** All of a body. */
export async function wholeBody(request: IncomingMessage, bytesMax: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of gitBody(request, { bytesMax })) chunks.push(chunk);
  return Buffer.concat(chunks);
}

function unpackerOf({ headers }: IncomingMessage) {
  const encoding = headers["content-encoding"]?.toLowerCase() ?? "identity";
  switch (encoding) {
    case "identity":
      return undefined;
    case "gzip":
    case "x-gzip":
      return createGunzip();
    case "deflate":
      return createInflate();
    default: {
      const text = "Cannot read body: expected the Content-Encoding gzip, deflate or none";
      throw new ActorError("unsupported_media_type", text);
    }
  }
}

function countedTo(bytesMax: number, stallMs: number): Transform {
  let bytes = 0;
  const counted = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      stalled.refresh();
      bytes += chunk.length;
      if (bytes <= bytesMax) done(null, chunk);
      else done(new ActorError("body_too_large", `Cannot read body: past ${bytesMax} bytes`));
    },
    flush(done) {
      clearTimeout(stalled);
      done();
    },
  });
  const stalled = setTimeout(() => {
    // What waits for its reader is not late.
    if (counted.writableNeedDrain) stalled.refresh();
    else counted.destroy(new ActorError("deadline_exceeded", "Cannot read body: nothing came"));
  }, stallMs);
  counted.once("close", () => clearTimeout(stalled));
  return counted;
}

const clientLeft = () => new ActorError("cancelled", "Cannot read body: the client has left");

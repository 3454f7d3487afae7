/**
 * Reads the body of a git request, which may be compressed and chunked. The decompressed bytes are limited, for each
 * request and for all requests whose bytes are in memory.
 */
import type { IncomingMessage } from "node:http";
import { type Readable, Transform } from "node:stream";
import { createGunzip, createInflate } from "node:zlib";
import { ActorError } from "../../../schemas/errors.ts";
import { BYTES_ACCOUNT_SHARE } from "../../../schemas/memory-limits.ts";
import { GIT_BODIES_BYTES_MAX } from "../../../schemas/repositories/limits.ts";
import { ByteBudget, type HeldBytes } from "../../http/byte-budget.ts";
import { DISCARD_LIMITS, type WholeDiscard } from "./push-discards.ts";

/**
 * A body that brings fewer than GIT_BODY_STALL_BYTES in GIT_BODY_STALL_MS is aborted, because it occupies a process.
 * Every useful connection is faster than 1 kB a second.
 */
const GIT_BODY_STALL_MS = 30_000;
const GIT_BODY_STALL_BYTES = 32 * 1024;
/** A body must bring `stallBytes` in each period of `stallMs`. */
interface Pace {
  stallMs: number;
  stallBytes: number;
}

/** How the rest of a refused body is read and discarded. */
interface Discarding {
  /** Defaults to `bytesMax` of DISCARD_LIMITS. */
  bytesMax?: number;
  /** Called if the body has more bytes. Returns the permission to read them too, if there is one. */
  more?(): WholeDiscard | undefined;
  /** Stops the reading. */
  signal?: AbortSignal;
  /** Called when no more bytes are read. By default, the connection of an incomplete body is closed. */
  ended?(): void;
}

const PACE: Pace = { stallMs: GIT_BODY_STALL_MS, stallBytes: GIT_BODY_STALL_BYTES };

/**
 * Returns the decompressed body. The stream fails with ActorError if the body is too large, too slow, or cannot be
 * decompressed.
 */
export function gitBody(
  request: IncomingMessage,
  {
    bytesMax,
    discarding = {},
    ...given
  }: { bytesMax: number; discarding?: Discarding } & Partial<Pace>,
): Readable {
  const pace = { ...PACE, ...given };
  const unpacking = unpackerOf(request);
  const counted = countedTo(bytesMax, pace);
  // Passes the first error to the reader of the stream.
  const fail = (error: Error) => counted.destroy(error);
  request.once("aborted", () => fail(clientLeft()));
  request.once("error", () => fail(clientLeft()));
  counted.once("close", () => {
    request.unpipe();
    unpacking?.destroy();
    discardRest(request, discarding, pace);
  });
  if (!unpacking) return request.pipe(counted);
  unpacking.once("error", () =>
    fail(new ActorError("invalid_request", "Cannot read body: it cannot be unpacked")),
  );
  return request.pipe(unpacking).pipe(counted);
}

/**
 * Reads and discards the rest of a refused body, within limits. Many clients read the response only after they have
 * sent the body. If the connection closes earlier, a client may never see the response (RFC 9112 section 9.6).
 */
function discardRest(
  request: IncomingMessage,
  { bytesMax = DISCARD_LIMITS.bytesMax, more, signal, ended = () => cutOff(request) }: Discarding,
  { stallMs, stallBytes }: Pace,
): void {
  if (request.complete || request.destroyed || signal?.aborted) {
    ended();
    return;
  }
  let [limit, bytes, counts] = [bytesMax, 0, 0];
  let whole: WholeDiscard | undefined;
  let isOver = false;
  const end = () => {
    if (isOver) return;
    isOver = true;
    clearTimeout(stalled);
    signal?.removeEventListener("abort", end);
    request.pause().off("data", discard);
    whole?.[Symbol.dispose]();
    ended();
  };
  const discard = (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > limit) {
      whole ??= more?.();
      limit = whole?.bytesMax ?? limit;
      if (bytes > limit) return end();
    }
    if (bytes - counts < stallBytes) return;
    counts = bytes;
    stalled.refresh();
  };
  const stalled = setTimeout(end, stallMs);
  signal?.addEventListener("abort", end);
  request.once("end", end).once("close", end).on("data", discard).resume();
}

/** Closes the connection of a body that did not arrive completely. */
export function cutOff(request: IncomingMessage): void {
  if (!request.complete) request.destroy();
}

/** Limits the decompressed bytes of requests that one gateway holds in memory, also before they have a process. */
export const requestBudget = (bytesMax = GIT_BODIES_BYTES_MAX) =>
  new ByteBudget({
    bytesMax,
    shares: [BYTES_ACCOUNT_SHARE],
    refusal: () =>
      new ActorError(
        "busy",
        "Cannot read body: too many large requests are in progress; try again",
        {
          retryAfterS: 1,
        },
      ),
  });

/** Reads a whole body. The bytes are taken from `held`, if given. */
export async function wholeBody(
  request: IncomingMessage,
  bytesMax: number,
  held?: Pick<HeldBytes, "take">,
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of gitBody(request, { bytesMax })) {
    held?.take(chunk.length);
    chunks.push(chunk);
  }
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

function countedTo(bytesMax: number, { stallMs, stallBytes }: Pace): Transform {
  let bytes = 0;
  let counts = 0;
  const counted = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      if (bytes - counts >= stallBytes) {
        counts = bytes;
        stalled.refresh();
      }
      if (bytes <= bytesMax) done(null, chunk);
      else
        done(
          new ActorError("body_too_large", `Cannot read body: it is larger than ${bytesMax} bytes`),
        );
    },
    flush(done) {
      clearTimeout(stalled);
      done();
    },
  });
  const stalled = setTimeout(() => {
    // A body is not late if it waits for its reader or has arrived completely.
    if (counted.writableNeedDrain || counted.writableEnded) stalled.refresh();
    else
      counted.destroy(new ActorError("deadline_exceeded", "Cannot read body: it came too slowly"));
  }, stallMs);
  counted.once("close", () => clearTimeout(stalled));
  return counted;
}

const clientLeft = () => new ActorError("cancelled", "Cannot read body: the client has left");

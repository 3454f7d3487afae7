/**
 * Reads a JSON or form body up to the limit of its route, and limits the total bytes of all bodies that the gateway
 * holds in memory.
 */
import { finished, type Readable } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import type { Request, RequestHandler } from "express";
import { ActorError } from "../../../schemas/errors.ts";
import { BODIES_BYTES_MAX } from "../../../schemas/limits.ts";
import { BYTES_ACCOUNT_SHARE } from "../../../schemas/memory-limits.ts";
import { ByteBudget } from "../byte-budget.ts";
import { callerOf, localsOf } from "../locals.ts";
import { readForm } from "../read-form.ts";
import { readJson } from "../read-json.ts";

/** Limits the bytes of all bodies that one gateway holds. A body counts until its request is answered. */
export const bodyBudget = (limits: { bytesMax?: number; smallBytesMax?: number } = {}) =>
  new ByteBudget({
    bytesMax: BODIES_BYTES_MAX,
    shares: [BYTES_ACCOUNT_SHARE],
    refusal: tooMany,
    ...limits,
  });

export function readBody(
  {
    bytesMax,
    isOptional = false,
    takesFiles = false,
  }: { bytesMax: number; isOptional?: boolean; takesFiles?: boolean | undefined },
  budget: ByteBudget,
): RequestHandler {
  return async (request, response, next) => {
    if (isOptional && isEmpty(request)) {
      localsOf(response).body = {};
      return next();
    }
    const isForm = takesFiles && FORM.test(typeOf(request));
    if (!isForm) checkType(request, takesFiles);
    const declared = Number(request.get("content-length") ?? 0);
    if (declared > bytesMax) throw tooLarge(bytesMax);
    const held = budget.open([callerOf(response).accountId], declared);
    let read = 0;
    let open = true;
    response.once("close", () => {
      open = false;
      held.release();
    });
    const chunks = heldChunks(request, (bytes) => {
      if (!open) throw clientLeft();
      if (read + bytes > bytesMax) throw tooLarge(bytesMax);
      held.take(bytes);
      read += bytes;
    });
    localsOf(response).body = isForm
      ? await readForm(chunks, typeOf(request))
      : await readWhole(chunks);
    next();
  };
}

const FORM = /^multipart\/form-data\s*;/i;
const typeOf = (request: Request) => request.get("content-type") ?? "";

async function readWhole(chunks: AsyncIterable<Buffer>): Promise<unknown> {
  const body = Buffer.concat(await Array.fromAsync(chunks));
  if (body.length > 0) return readJson(body);
  throw new ActorError("invalid_request", "Cannot accept body: expected a JSON object");
}

const isEmpty = ({ headers }: Request) =>
  headers["transfer-encoding"] === undefined && Number(headers["content-length"] ?? 0) === 0;

/** Reads and decompresses a body. Calls `hold` before it yields a piece; `hold` may throw a refusal. */
async function* heldChunks(
  request: Request,
  hold: (bytes: number) => void,
): AsyncGenerator<Buffer> {
  const stream = unpacked(request);
  try {
    // A refusal is sent on the same connection, so the request must not be destroyed when reading stops.
    for await (const chunk of stream.iterator({ destroyOnReturn: stream !== request })) {
      hold(chunk.length);
      yield chunk;
    }
  } catch (error) {
    if (error instanceof ActorError) throw error;
    if (request.destroyed && !request.complete) throw clientLeft();
    if (stream === request) throw error;
    throw new ActorError("invalid_request", "Cannot accept body: it cannot be unpacked");
  }
}

function unpacked(request: Request): Readable {
  const encoding = request.get("content-encoding")?.toLowerCase() ?? "identity";
  if (encoding === "identity") return request;
  const unpacking = unpackerOf(encoding);
  finished(request, (error) => {
    if (error) unpacking.destroy(error);
  });
  return request.pipe(unpacking);
}

function unpackerOf(encoding: string) {
  switch (encoding) {
    case "gzip":
      return createGunzip();
    case "deflate":
      return createInflate();
    case "br":
      return createBrotliDecompress();
    default:
      throw new ActorError(
        "unsupported_media_type",
        "Cannot read body: unknown Content-Encoding, expected gzip, deflate, br or none",
      );
  }
}

function checkType(request: Request, takesFiles: boolean): void {
  const type = typeOf(request);
  if (/^application\/(?:[\w.-]+\+)?json\s*(?:;\s*charset="?utf-8"?\s*)?;?$/i.test(type)) return;
  throw new ActorError(
    "unsupported_media_type",
    `Cannot read body: its type is "${type}", expected application/json in UTF-8${takesFiles ? ", or multipart/form-data" : ""}`,
  );
}

const tooLarge = (bytesMax: number) =>
  new ActorError(
    "body_too_large",
    `Cannot read body: it is too large, expected at most ${bytesMax} bytes`,
  );

const tooMany = () =>
  new ActorError("busy", "Cannot accept body: too many large uploads are in progress; try again", {
    retryAfterS: 1,
  });

const clientLeft = () => new ActorError("cancelled", "Cannot read body: the client left");

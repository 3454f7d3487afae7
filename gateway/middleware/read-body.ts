/** Reads a JSON body up to its route's limit, and no more bodies at once than the gateway's memory is meant to hold. */
import express, { type Request, type RequestHandler } from "express";
import { ActorError } from "../../schemas/errors.ts";
import { BODIES_BYTES_MAX } from "../../schemas/limits.ts";
import { localsOf } from "../locals.ts";
import { readJson } from "../read-json.ts";

/** Bytes of the bodies under way on one gateway. */
export interface BodyBudget {
  bytes: number;
}

export function readBody(bytesMax: number, budget: BodyBudget): RequestHandler {
  const read = express.raw({ limit: bytesMax, type: () => true });
  return async (request, response, next) => {
    checkType(request);
    const bytes = Math.min(bytesMax, declaredBytes(request) ?? bytesMax);
    if (budget.bytes + bytes > BODIES_BYTES_MAX) {
      throw new ActorError("busy", "Cannot accept body: too many large ones are under way", {
        retryAfterS: 1,
      });
    }
    budget.bytes += bytes;
    response.once("close", () => {
      budget.bytes -= bytes;
    });
    await new Promise<void>((resolve, reject) => {
      read(request, response, (error?: unknown) => {
        if (error === undefined) resolve();
        else reject(refusalOf(error, bytesMax));
      });
    });
    // Without a body there is nothing that the raw parser would have set.
    const body: unknown = request.body;
    if (!Buffer.isBuffer(body) || body.length === 0) {
      throw new ActorError("invalid_request", "Cannot read body: expected a JSON object");
    }
    localsOf(response).body = readJson(body);
    request.body = undefined;
    next();
  };
}

function checkType(request: Request): void {
  const type = request.get("content-type") ?? "";
  if (/^application\/(?:[\w.-]+\+)?json\s*(?:;\s*charset="?utf-8"?\s*)?;?$/i.test(type)) return;
  throw new ActorError(
    "unsupported_media_type",
    `Cannot read body: its type is "${type}", expected application/json in UTF-8`,
  );
}

/** Undefined when the body's length is not known beforehand, or grows as it is unpacked. */
function declaredBytes(request: Request): number | undefined {
  const length = request.get("content-length");
  const packed = request.get("content-encoding") !== undefined;
  return length === undefined || packed ? undefined : Number(length);
}

/** The body reader's own errors, by their type. */
function refusalOf(error: unknown, bytesMax: number): unknown {
  if (!(error instanceof Error)) return error;
  // What zlib says when the bytes are not what Content-Encoding promises.
  if ("code" in error && String(error.code).startsWith("Z_")) {
    return new ActorError("invalid_request", "Cannot read body: it cannot be unpacked");
  }
  const type = "type" in error ? error.type : undefined;
  switch (type) {
    case "entity.too.large":
      return new ActorError(
        "body_too_large",
        `Cannot read body: it is too large, expected at most ${bytesMax} bytes`,
      );
    case "encoding.unsupported":
      return new ActorError(
        "unsupported_media_type",
        "Cannot read body: unknown Content-Encoding, expected gzip, deflate, br or none",
      );
    case "request.aborted":
      return new ActorError("cancelled", "Cannot read body: the client left");
    case "request.size.invalid":
      return new ActorError("invalid_request", "Cannot read body: its size is not Content-Length");
    default:
      return error;
  }
}

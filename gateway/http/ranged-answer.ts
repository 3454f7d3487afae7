/** Answers with bytes that have an ETag: all bytes, one range, or 304 if the client already has them. */
import type { Request, Response } from "express";
import { ActorError } from "../../schemas/errors.ts";
import { writeAnswer } from "./write-answer.ts";

interface NamedBytes {
  /** The entity tag, a strong validator: different bytes have different tags. */
  tag: string;
  bytes: number;
  type: string;
  /** Returns the bytes from `start` to `end`, both included. */
  read(start: number, end: number): AsyncIterable<Uint8Array>;
}

/** The statuses besides 200 that such an answer can have, for the OpenAPI document. */
export const RANGED = {
  206: "The part that Range asks for",
  304: "What the client has, by its If-None-Match",
} as const;

/**
 * Implements RFC 9110 sections 13 and 14 for one range of bytes. Several ranges are answered with all bytes, as
 * section 14.2 allows.
 */
export async function answerRanged(
  { headers }: Pick<Request, "headers">,
  response: Response,
  { tag, bytes, type, read }: NamedBytes,
  signal: AbortSignal,
): Promise<void> {
  const quoted = `"${tag}"`;
  // A cache may store the answer, but must revalidate it each time, because the token may be revoked.
  response.set({ ETag: quoted, "Cache-Control": "private, no-cache", "Accept-Ranges": "bytes" });
  if (hasEntityTag(headers["if-none-match"], quoted)) {
    response.status(304).end();
    return;
  }
  const condition = headers["if-range"];
  const requested = condition === undefined || condition === quoted ? headers.range : undefined;
  const range = rangeOf(requested, bytes);
  if (range === "none") {
    response.removeHeader("ETag");
    response.set("Content-Range", `bytes */${bytes}`);
    throw new ActorError("range_not_satisfiable", `Cannot read range: there are ${bytes} bytes`);
  }
  const { start, end } = range ?? { start: 0, end: bytes - 1 };
  if (range) {
    response.status(206).set("Content-Range", `bytes ${start}-${end}/${bytes}`);
  }
  response.setHeader("Content-Type", type);
  response.set("Content-Length", String(end - start + 1));
  if (bytes === 0) {
    response.end();
    return;
  }
  await writeAnswer(read(start, end), response, { bytes: end - start + 1, signal });
}

/**
 * Returns whether the header contains the tag. Tags are compared as If-None-Match requires (RFC 9110 section 13.1.2).
 */
export function hasEntityTag(header: string | undefined, tag: string): boolean {
  if (header === undefined) return false;
  return header
    .split(",")
    .map((one) => one.trim().replace(/^W\//, ""))
    .some((one) => one === "*" || one === tag);
}

/**
 * Returns the requested range; undefined if the client wants all bytes, and "none" if the range starts after the last
 * byte.
 */
function rangeOf(
  header: string | undefined,
  bytes: number,
): { start: number; end: number } | "none" | undefined {
  const [, from = "", to = ""] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header ?? "") ?? [];
  if (from === "" && to === "") return undefined;
  if (from === "") {
    const length = Math.min(Number(to), bytes);
    return length === 0 ? "none" : { start: bytes - length, end: bytes - 1 };
  }
  const start = Number(from);
  const end = to === "" ? bytes - 1 : Math.min(Number(to), bytes - 1);
  // RFC 9110 section 14.2: an invalid Range header is ignored.
  if (to !== "" && Number(to) < start) return undefined;
  return start >= bytes ? "none" : { start, end };
}

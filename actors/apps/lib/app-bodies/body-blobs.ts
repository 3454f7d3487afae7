/**
 * Bodies of apps' requests and responses, and values of calls through stubs. A small one is part of the message; a
 * larger one is in a blob that the message names.
 */
import { randomUUID } from "node:crypto";
import { type Body, inlineBody, inlineBytes } from "../../../../schemas/apps/app-exchange.ts";
import { APP_REQUEST_BYTES_MAX, CALL_INLINE_BYTES_MAX } from "../../../../schemas/apps/limits.ts";
import { ActorError } from "../../../../schemas/errors.ts";
import type { BlobStore } from "../../../runtime/store/blob-store.ts";

/**
 * Limit of a body inside a message. A larger body is stored as a blob. As base64 in JSON, a body takes a third more.
 */
export const APP_BODY_INLINE_BYTES_MAX = 600_000;
/** A blob with a body expires after this many seconds. By then no attempt of its call is running. */
const APP_BODY_KEPT_S = 600;

/** Reads a body. Throws `body_too_large` past the limit, because the writer of the blob is not trusted. */
export async function readBody(blobs: Pick<BlobStore, "get">, body: Body): Promise<Buffer> {
  if (!("blob" in body)) return inlineBytes(body);
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of blobs.get(body.blob)) {
    bytes += piece.length;
    if (bytes > APP_REQUEST_BYTES_MAX) {
      const text = `Cannot read a body: it is larger than ${APP_REQUEST_BYTES_MAX} bytes`;
      throw new ActorError("body_too_large", text);
    }
    pieces.push(piece);
  }
  return Buffer.concat(pieces, bytes);
}

/** Stores a body. A blob that is needed belongs to `app`: it is deleted with the app at the latest. */
export async function writeBody(
  blobs: Pick<BlobStore, "put">,
  app: string,
  bytes: Uint8Array,
): Promise<Body> {
  return bytes.length <= APP_BODY_INLINE_BYTES_MAX
    ? inlineBody(bytes)
    : { blob: await putBytes(blobs, app, bytes) };
}

/** A value in base64. If there is a blob, it has the value, and the text is empty. */
export interface WrittenValue {
  base64: string;
  blob?: string | undefined;
}

/** Stores a value. A blob that is needed belongs to `app`: it is deleted with the app at the latest. */
export async function writeValue(
  blobs: Pick<BlobStore, "put">,
  app: string,
  bytes: Uint8Array,
): Promise<WrittenValue> {
  if (bytes.length > CALL_INLINE_BYTES_MAX) {
    return { base64: "", blob: await putBytes(blobs, app, bytes) };
  }
  return { base64: Buffer.from(bytes).toString("base64") };
}

/** Reads a value and deletes its blob, because nobody else reads it. Throws `body_too_large` past a body's limit. */
export async function takeValue(
  blobs: Pick<BlobStore, "get" | "remove">,
  { base64, blob }: WrittenValue,
): Promise<Buffer> {
  if (blob === undefined) return Buffer.from(base64, "base64");
  try {
    return await readBody(blobs, { blob });
  } finally {
    dropBlob(blobs, blob);
  }
}

/** Deletes a blob, if there is one, that nobody reads any more. If this fails, the blob expires. */
export function dropBlob(blobs: Pick<BlobStore, "remove">, blob: string | undefined): void {
  if (blob !== undefined) void blobs.remove(blob).catch(() => {});
}

/** Stores bytes for one call, and returns the name of the blob. */
async function putBytes(
  blobs: Pick<BlobStore, "put">,
  app: string,
  bytes: Uint8Array,
): Promise<string> {
  const name = `app.${app}.body.${randomUUID()}`;
  await blobs.put(name, bytes, { ttlS: APP_BODY_KEPT_S });
  return name;
}

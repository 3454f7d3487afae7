/** The messages of a blob in its stream: its head and its pieces. */
import { createHash } from "node:crypto";
import type { StoredMsg } from "@nats-io/jetstream";
import { z } from "zod";
import { BATCH_BYTES_MAX, BATCH_MESSAGES_MAX, BLOB_CHUNK_BYTES } from "../../../schemas/limits.ts";
import type { Write } from "../bus/atomic-batch.ts";
import { decodePiece, ENCODING_HEADER, type EncodedPiece, PieceEncoder } from "./blob-encoding.ts";

/**
 * The description of a blob, which is stored in a header of its head. The head is the message that holds the blob's
 * last bytes. The bytes before are in `chunks` messages under `writer`. Heads of small blobs may have no writer.
 */
const Head = z.object({
  bytes: z.number(),
  sha256: z.string(),
  chunks: z.number(),
  writer: z.string().optional(),
});
export type Head = z.infer<typeof Head>;

/** A blob that is stored in one message. */
export interface SmallBlob {
  name: string;
  content: Uint8Array;
}

export interface StoredBlob {
  name: string;
  bytes: number;
  /**
   * Bytes of the blob's messages in the stream, after compression. An upper bound if the blob was stored before with
   * several pieces.
   */
  storedBytes: number;
  /** False where the blob surely did not exist before. */
  wasThere?: boolean;
}

const HEAD = "Trunkline-Blob";

/** Returns a write that succeeds only if the subject holds no message, because a stored blob never changes. */
export function writeOf(
  subject: string,
  { payload, headers }: EncodedPiece,
  ttlS?: number,
  head?: Head,
): Write {
  return {
    subject,
    payload,
    headers: {
      ...headers,
      ...(ttlS !== undefined && { "Nats-TTL": `${ttlS}s` }),
      ...(head && { [HEAD]: JSON.stringify(head) }),
    },
    expect: { sequence: 0 },
  };
}

/** Returns the only write of a small blob. */
export async function smallWriteOf(subject: string, { name, content }: SmallBlob): Promise<Write> {
  const sha256 = createHash("sha256").update(content).digest("hex");
  const piece = await new PieceEncoder(name).encode(content);
  return writeOf(subject, piece, undefined, { bytes: content.length, sha256, chunks: 0 });
}

export const headOf = ({ header }: StoredMsg): Head => Head.parse(JSON.parse(header.get(HEAD)));

/** The bytes of a message before they were encoded. */
export const bytesOf = ({ data, header }: StoredMsg, { bytes }: Head) =>
  decodePiece({ data, encoding: header?.get(ENCODING_HEADER) ?? "" }, bytes);

/**
 * Groups blobs that can share one batch, which has one stream. A blob that cannot share a batch forms its own group.
 */
export function groupsOf(
  blobs: readonly SmallBlob[],
  streamOf: (name: string) => string,
): SmallBlob[][] {
  const groups: SmallBlob[][] = [];
  const open = new Map<string, { group: SmallBlob[]; bytes: number }>();
  for (const blob of blobs) {
    const bytes = blob.content.length;
    const stream = streamOf(blob.name);
    const last = open.get(stream);
    if (bytes > BLOB_CHUNK_BYTES) groups.push([blob]);
    else if (
      last &&
      last.group.length < BATCH_MESSAGES_MAX &&
      last.bytes + bytes <= BATCH_BYTES_MAX
    ) {
      last.group.push(blob);
      last.bytes += bytes;
    } else {
      const group = [blob];
      groups.push(group);
      open.set(stream, { group, bytes });
    }
  }
  return groups;
}

/** How a blob lies in its stream: the message of its head, and those of its pieces. */
import type { StoredMsg } from "@nats-io/jetstream";
import { z } from "zod";
import { BLOB_CHUNK_BYTES } from "../../../schemas/blob-limits.ts";
import { BATCH_BYTES_MAX, BATCH_MESSAGES_MAX } from "../../../schemas/limits.ts";
import { blobSubjects } from "../../../schemas/subjects.ts";
import type { Write } from "../bus/atomic-batch.ts";
import { decodePiece, ENCODING_HEADER, type EncodedPiece } from "./blob-encoding.ts";

/** What a blob is: a header of its head, which holds its last bytes. `chunks` come before those, under `writer`. */
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
  /** Seconds, at least 1, after which the blob expires; without it the blob stays until it is removed. */
  ttlS?: number | undefined;
}

const HEAD = "Trunkline-Blob";
/** Written only where nothing is: what is stored is never changed. */
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

export const headOf = ({ header }: StoredMsg): Head => Head.parse(JSON.parse(header.get(HEAD)));

/** The bytes of a message as they were put. */
export const bytesOf = ({ data, header }: StoredMsg, { bytes }: Head) =>
  decodePiece({ data, encoding: header?.get(ENCODING_HEADER) ?? "" }, bytes);

/** What can share one batch; what cannot is alone. */
export function groupsOf(blobs: readonly SmallBlob[]): SmallBlob[][] {
  const groups: SmallBlob[][] = [];
  const open = new Map<string, { group: SmallBlob[]; bytes: number }>();
  for (const blob of blobs) {
    const bytes = blob.content.length;
    const { stream } = blobSubjects(blob.name);
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

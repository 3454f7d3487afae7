/** Stores the bodies of records: small ones together in one write, each large one alone. */
import { strict as assert } from "node:assert";
import { BLOB_CHUNK_BYTES } from "../../../../schemas/limits.ts";
import type { SmallBlob, StoredBlob } from "../../../runtime/store/blob-messages.ts";
import type { BlobStore } from "../../../runtime/store/blob-store.ts";
import { GroupWriter } from "./group-writer.ts";

/** Maximum number of small records in one call of `putAll`. */
export const RECORD_GROUP_MAX = 256;

export class RecordWriter {
  readonly #blobs: Pick<BlobStore, "put" | "putAll">;
  readonly #small: GroupWriter<SmallBlob, StoredBlob>;

  constructor(blobs: Pick<BlobStore, "put" | "putAll">) {
    this.#blobs = blobs;
    this.#small = new GroupWriter(async (group) => {
      const stored = new Map((await blobs.putAll(group)).map((blob) => [blob.name, blob]));
      return ({ name }) => {
        const blob = stored.get(name);
        assert(blob, `${name} is stored`);
        return blob;
      };
    }, RECORD_GROUP_MAX);
  }

  /** Stores a body. Resolves when it is durable. */
  write(name: string, content: Uint8Array): Promise<StoredBlob> {
    if (content.length > BLOB_CHUNK_BYTES) return this.#blobs.put(name, content);
    return this.#small.add({ name, content });
  }

  /** Stores a large body chunk by chunk. Resolves when it is durable. */
  writeLarge(
    name: string,
    content: AsyncIterable<Uint8Array>,
    signal: AbortSignal,
  ): Promise<StoredBlob> {
    return this.#blobs.put(name, content, { signal });
  }
}

/** Stores the bodies of records: small ones together in one write, each large one alone. */

import type { RecordBlob } from "../../../../schemas/crawl/crawl-job.ts";
import { BLOB_CHUNK_BYTES } from "../../../../schemas/limits.ts";
import type { BlobStore } from "../../../runtime/store/blob-store.ts";
import { GroupWriter } from "./group-writer.ts";

/** Maximum number of small records in one call of `putAll`. */
export const RECORD_GROUP_MAX = 256;

export class RecordWriter {
  readonly #blobs: Pick<BlobStore, "put" | "putAll">;
  readonly #small: GroupWriter<{ name: string; content: Uint8Array }>;

  constructor(blobs: Pick<BlobStore, "put" | "putAll">) {
    this.#blobs = blobs;
    this.#small = new GroupWriter((group) => blobs.putAll(group), RECORD_GROUP_MAX);
  }

  /** Stores a body. Resolves when it is durable. */
  async write(name: string, content: Uint8Array): Promise<RecordBlob> {
    if (content.length > BLOB_CHUNK_BYTES) return this.#blobs.put(name, content);
    await this.#small.add({ name, content });
    return { name, bytes: content.length };
  }
}

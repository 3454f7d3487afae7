/** A store of blobs in memory for tests of the gateway. It returns blobs in pieces, as the bus does. */

import { ActorError } from "../../schemas/errors.ts";
import { BLOB_CHUNK_BYTES } from "../../schemas/limits.ts";

export class MemoryBlobs {
  readonly blobs = new Map<string, Uint8Array>();
  /** The names of blobs in the order of reading, and the number of bytes that readers took. */
  readonly read: string[] = [];
  bytesTaken = 0;
  /** The name of a blob whose reading fails after the first piece. */
  broken: string | undefined;

  async put(name: string, content: Uint8Array | AsyncIterable<Uint8Array>) {
    const bytes =
      content instanceof Uint8Array ? content : Buffer.concat(await Array.fromAsync(content));
    this.blobs.set(name, bytes);
    return { name, bytes: bytes.length, storedBytes: bytes.length };
  }

  async remove(name: string) {
    this.blobs.delete(name);
  }

  async *get(name: string, { signal }: { signal?: AbortSignal } = {}) {
    this.read.push(name);
    const content = this.blobs.get(name);
    if (!content) throw new ActorError("not_found", `Cannot read blob ${name}: there is none`);
    for (let from = 0; from < content.length; from += BLOB_CHUNK_BYTES) {
      signal?.throwIfAborted();
      const chunk = content.subarray(from, from + BLOB_CHUNK_BYTES);
      this.bytesTaken += chunk.length;
      yield chunk;
      if (name === this.broken) throw new Error("the disk is gone");
    }
  }
}

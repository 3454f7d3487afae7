/** An object store in memory, as a test's counterpart of ObjectStore. */
import { BLOB_CHUNK_BYTES } from "../../schemas/limits.ts";

/** The capacity of the real store on a disk that is large enough. */
const CAPACITY = 4 * 1024 ** 3;

export class MemoryObjects {
  readonly objects = new Map<string, Buffer>();
  capacityBytes = CAPACITY;

  async putBytes(name: string, bytes: Uint8Array): Promise<void> {
    this.objects.set(name, Buffer.from(bytes));
  }

  async put(name: string, content: AsyncIterable<Uint8Array>): Promise<number> {
    const bytes = Buffer.concat(await Array.fromAsync(content));
    this.objects.set(name, bytes);
    return bytes.length;
  }

  async get(name: string) {
    const content = this.objects.get(name);
    return content && { bytes: content.length, chunks: pieces(content) };
  }

  async remove(name: string): Promise<void> {
    this.objects.delete(name);
  }

  async capacity(): Promise<number> {
    return this.capacityBytes;
  }
}

async function* pieces(content: Buffer) {
  for (let from = 0; from < content.length; from += BLOB_CHUNK_BYTES) {
    yield content.subarray(from, from + BLOB_CHUNK_BYTES);
  }
}

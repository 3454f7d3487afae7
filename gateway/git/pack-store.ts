/** Packs on the bus: one blob each, the index before the pack, named after the SHA-256 of the pack. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { open, readFile, stat } from "node:fs/promises";
import type { BlobStore } from "../../actors/runtime/blob-store.ts";
import { type Pack, packBlob } from "../../schemas/repo.ts";

export type PackBlobs = Pick<BlobStore, "put" | "get">;

export interface PackFiles {
  pack: string;
  index: string;
}

/** Files up to this size are read whole: with both, a blob of one message. */
const WHOLE_BYTES_MAX = 512 * 1024;

export class PackStore {
  readonly #blobs: PackBlobs;

  constructor(blobs: PackBlobs) {
    this.#blobs = blobs;
  }

  /** Resolves when it is durable. Storing it again changes nothing. */
  async put(accountId: string, files: PackFiles, signal: AbortSignal): Promise<Pack> {
    const [pack, index] = await Promise.all([stat(files.pack), stat(files.index)]);
    const sizes = { bytes: pack.size, indexBytes: index.size };
    if (pack.size + index.size <= WHOLE_BYTES_MAX) {
      const [packed, indexed] = await Promise.all([readFile(files.pack), readFile(files.index)]);
      const sha256 = createHash("sha256").update(packed).digest("hex");
      const content = Buffer.concat([indexed, packed]);
      await this.#blobs.put(packBlob(accountId, sha256), content, { signal });
      return { sha256, ...sizes };
    }
    const hash = createHash("sha256");
    for await (const chunk of createReadStream(files.pack)) hash.update(chunk);
    const sha256 = hash.digest("hex");
    await this.#blobs.put(packBlob(accountId, sha256), both(files), { signal });
    return { sha256, ...sizes };
  }

  /** Writes it to files. Rejects where it is not there, or is not what it was. */
  async get(accountId: string, pack: Pack, files: PackFiles, signal: AbortSignal): Promise<void> {
    await using index = await open(files.index, "wx");
    await using packed = await open(files.pack, "wx");
    const hash = createHash("sha256");
    let [indexBytes, packBytes] = [0, 0];
    for await (const chunk of this.#blobs.get(packBlob(accountId, pack.sha256), { signal })) {
      const ofIndex = chunk.subarray(0, Math.max(0, pack.indexBytes - indexBytes));
      const ofPack = chunk.subarray(ofIndex.length);
      indexBytes += ofIndex.length;
      packBytes += ofPack.length;
      hash.update(ofPack);
      if (ofIndex.length > 0) await index.writeFile(ofIndex);
      if (ofPack.length > 0) await packed.writeFile(ofPack);
    }
    if (packBytes !== pack.bytes || hash.digest("hex") !== pack.sha256) {
      throw new Error(`Cannot use pack ${pack.sha256}: what is stored is another`);
    }
  }
}

async function* both({ index, pack }: PackFiles): AsyncGenerator<Uint8Array> {
  yield* createReadStream(index);
  yield* createReadStream(pack);
}

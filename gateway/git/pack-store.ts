/** Packs on the bus: one blob each, the index before the pack, named after the SHA-256 of the pack. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { open, readFile, stat } from "node:fs/promises";
import type { ActorClient } from "../../actors/runtime/actor-client.ts";
import type { BlobStore } from "../../actors/runtime/blob-store.ts";
import { ActorError } from "../../schemas/errors.ts";
import { PACK_HELD_MS, SWAP_PACKS_MAX } from "../../schemas/git-limits.ts";
import { PACK_SWEEP, packSweep } from "../../schemas/pack-sweep.ts";
import { type HeldPack, type Pack, packBlob } from "../../schemas/repo.ts";

export type PackBlobs = Pick<BlobStore, "put" | "get" | "isWhole">;

export interface PackFiles {
  pack: string;
  index: string;
}

export interface PackStoreOptions {
  now: () => number;
  /** How long a pack that was just stored is surely there. */
  heldMs?: number;
}

/** Files up to this size are read whole: with both, a blob of one message. */
const WHOLE_BYTES_MAX = 512 * 1024;

export class PackStore {
  readonly #blobs: PackBlobs;
  readonly #actors: Pick<ActorClient, "call">;
  readonly #now: () => number;
  readonly #heldMs: number;

  constructor(
    blobs: PackBlobs,
    actors: Pick<ActorClient, "call">,
    { now, heldMs = PACK_HELD_MS }: PackStoreOptions,
  ) {
    this.#blobs = blobs;
    this.#actors = actors;
    this.#now = now;
    this.#heldMs = heldMs;
  }

  /** Resolves when it is durable, and held for a while. Storing it again changes nothing. */
  async put(accountId: string, files: PackFiles, signal: AbortSignal): Promise<HeldPack> {
    const [pack, index] = await Promise.all([stat(files.pack), stat(files.index)]);
    const sizes = { bytes: pack.size, indexBytes: index.size };
    const isSmall = pack.size + index.size <= WHOLE_BYTES_MAX;
    const small = isSmall && (await Promise.all([readFile(files.index), readFile(files.pack)]));
    const sha256 = await hashOf(small ? [small[1]] : createReadStream(files.pack));
    const name = packBlob(accountId, sha256);
    const store = () =>
      this.#blobs.put(name, small ? Buffer.concat(small) : both(files), { signal });
    const until = this.#now() + this.#heldMs;
    const { wasThere } = await store();
    if (wasThere === false) return { sha256, ...sizes, until };
    // Nobody may have named it for long: then it is about to be swept, or was just now.
    const held = await this.hold(accountId, [sha256], signal);
    if (!(await this.#blobs.isWhole(name))) {
      await store();
      if (!(await this.#blobs.isWhole(name))) {
        const text = "Cannot store pack: what is left of an earlier try is in its way; try later";
        throw new ActorError("unavailable", text, { retryAfterS: 60 });
      }
    }
    return { sha256, ...sizes, until: Math.min(held, this.#now() + this.#heldMs) };
  }

  /**
   * Keeps packs from being swept, to name them once more. Returns until when. Whether they are still there is to be
   * looked at after this.
   */
  async hold(accountId: string, packs: readonly string[], signal: AbortSignal): Promise<number> {
    let held = Number.POSITIVE_INFINITY;
    for (let from = 0; from < packs.length; from += SWAP_PACKS_MAX) {
      const input = { accountId, packs: packs.slice(from, from + SWAP_PACKS_MAX) };
      const { until } = await this.#actors.call(packSweep, PACK_SWEEP, "hold", input, { signal });
      held = Math.min(held, until);
    }
    return held;
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

async function hashOf(chunks: Iterable<Uint8Array> | AsyncIterable<Uint8Array>): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of chunks) hash.update(chunk);
  return hash.digest("hex");
}

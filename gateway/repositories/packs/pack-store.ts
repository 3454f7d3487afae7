/** Stores packs on the bus. Each pack is one blob: the index, then the pack, named after the SHA-256 of the pack. */
import { createHash } from "node:crypto";
import { createReadStream, readFileSync, statSync } from "node:fs";
import { open, stat } from "node:fs/promises";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import type { BlobStore } from "../../../actors/runtime/store/blob-store.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { PACK_HELD_MS, SWAP_PACKS_MAX } from "../../../schemas/repositories/limits.ts";
import {
  PACK_SWEEP,
  packSweep,
  type SweptFamily,
} from "../../../schemas/repositories/pack-sweep.ts";
import { type Pack, packBlob } from "../../../schemas/repositories/repo.ts";
import { UPKEEP_SMALL_BYTES, UPKEEP_STREAM_SHARE } from "../../../schemas/store-limits.ts";
import type { AccountStorage, StoredThing } from "./account-storage.ts";

/** A pack and its index up to this size stay in memory while they are inspected and stored. They fit one message. */
const WHOLE_PACK_BYTES_MAX = 512 * 1024;

/** An account and a pack that do not exist. */
const NOBODY = "0".repeat(32);
const NO_PACK = "0".repeat(64);

export type PackBlobs = Pick<BlobStore, "put" | "get" | "isWhole" | "streamUse">;

export interface PackFiles {
  pack: string;
  index: string;
  /** The content of a small pack and its index. */
  whole?: { pack: Buffer; index: Buffer };
}

/** A stored pack. The sweep cannot delete it before `until`, a time of `performance.now()`. */
export interface KeptPack extends Pack {
  until: number;
}

/**
 * Returns a stored pack or large file for a message. A duration replaces the time `until`, which only this process
 * can read.
 */
export const heldNow = <K extends { until: number }>({ until, ...stored }: K) => ({
  ...stored,
  heldMs: Math.floor(until - performance.now()),
});

export interface PackStoreOptions {
  storage: AccountStorage;
  /** How long the sweep keeps a newly stored pack that no repository names yet. */
  heldMs?: number;
}

/**
 * Adds the content of a small pack. The reads are synchronous: the files were just written, so the system has them in
 * memory, and another thread would take longer.
 */
export function withWhole(files: PackFiles): PackFiles {
  const bytes = statSync(files.pack).size + statSync(files.index).size;
  if (bytes > WHOLE_PACK_BYTES_MAX) return files;
  return { ...files, whole: { pack: readFileSync(files.pack), index: readFileSync(files.index) } };
}

export class PackStore {
  readonly #blobs: PackBlobs;
  readonly #actors: Pick<ActorClient, "call">;
  readonly #storage: AccountStorage;
  readonly #heldMs: number;

  constructor(
    blobs: PackBlobs,
    actors: Pick<ActorClient, "call">,
    { storage, heldMs = PACK_HELD_MS }: PackStoreOptions,
  ) {
    this.#blobs = blobs;
    this.#actors = actors;
    this.#storage = storage;
    this.#heldMs = heldMs;
  }

  /**
   * Stores a pack. Resolves when the pack is durable and the sweep cannot delete it for a limited time. A repetition
   * changes nothing. Refuses with `storage_full` if the account has too many bytes, or if a pack of upkeep would leave
   * too little room to all accounts.
   */
  async put(
    accountId: string,
    files: PackFiles,
    signal: AbortSignal,
    { isUpkeep }: Pick<StoredThing, "isUpkeep"> = {},
  ): Promise<KeptPack> {
    const { whole } = files;
    const [bytes, indexBytes] = whole
      ? [whole.pack.length, whole.index.length]
      : await Promise.all([sizeOf(files.pack), sizeOf(files.index)]);
    const sizes = { bytes, indexBytes };
    const sha256 = await hashOf(whole ? [whole.pack] : createReadStream(files.pack));
    const name = packBlob(accountId, sha256);
    const content = () => (whole ? Buffer.concat([whole.index, whole.pack]) : both(files));
    const put = () => this.#blobs.put(name, content(), { signal });
    const thing = { accountId, bytes: bytes + indexBytes, isUpkeep };
    const store = () => this.#storage.store(thing, put, signal);
    if (isUpkeep) await this.#checkUpkeepRoom(name, bytes + indexBytes);
    const until = performance.now() + this.#heldMs;
    const { wasThere } = await store();
    if (wasThere === false) return { sha256, ...sizes, until };
    // The pack was stored before. If no repository has named it for a long time, the sweep may be about to delete it,
    // or has just deleted it.
    const held = await this.hold(accountId, [sha256], signal);
    if (!(await this.#blobs.isWhole(name))) {
      await store();
      if (!(await this.#blobs.isWhole(name))) {
        const text =
          "Cannot store pack: an interrupted upload still holds the name; try again in some minutes";
        throw new ActorError("unavailable", text, { retryAfterS: 60 });
      }
    }
    return { sha256, ...sizes, until: Math.min(held, performance.now() + this.#heldMs) };
  }

  /**
   * Protects stored packs from the sweep, so that a repository can name them again. Returns until when, as a time of
   * `performance.now()`. The caller must then check that the packs still exist.
   */
  async hold(
    accountId: string,
    packs: readonly string[],
    signal: AbortSignal,
    family: SweptFamily = "pack",
  ): Promise<number> {
    let held = Number.POSITIVE_INFINITY;
    for (let first = 0; first < packs.length; first += SWAP_PACKS_MAX) {
      const input = { family, accountId, packs: packs.slice(first, first + SWAP_PACKS_MAX) };
      const from = performance.now();
      const { heldMs } = await this.#actors.call(packSweep, PACK_SWEEP, "hold", input, { signal });
      held = Math.min(held, from + heldMs);
    }
    return held;
  }

  /** Returns when the stream of packs was created. A restored backup has a new stream. */
  async createdAt(): Promise<string> {
    return (await this.#blobs.streamUse(packBlob(NOBODY, NO_PACK))).createdAt;
  }

  /** Large packs of upkeep wait until the stream has room, because the packs that they replace stay for some hours. */
  async #checkUpkeepRoom(name: string, bytes: number): Promise<void> {
    if (bytes < UPKEEP_SMALL_BYTES) return;
    const stream = await this.#blobs.streamUse(name);
    if (stream.bytes + bytes <= UPKEEP_STREAM_SHARE * stream.bytesMax) return;
    const share = `${100 * UPKEEP_STREAM_SHARE} % of its ${stream.bytesMax} bytes`;
    const text = `Cannot compact: ${bytes} bytes more would fill the stream of packs past ${share}`;
    throw new ActorError("storage_full", text);
  }

  /** Writes a pack to files. Rejects if it is missing or damaged. */
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
      throw new Error(`Cannot use pack ${pack.sha256}: the stored bytes differ`);
    }
  }
}

async function* both({ index, pack }: PackFiles): AsyncGenerator<Uint8Array> {
  yield* createReadStream(index);
  yield* createReadStream(pack);
}

const sizeOf = async (path: string) => (await stat(path)).size;

async function hashOf(chunks: Iterable<Uint8Array> | AsyncIterable<Uint8Array>): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of chunks) hash.update(chunk);
  return hash.digest("hex");
}

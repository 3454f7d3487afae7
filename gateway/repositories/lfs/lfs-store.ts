/** Stores large files on the bus: one blob each, named after the SHA-256 of its content. */
import { createHash } from "node:crypto";
import type { BlobStore } from "../../../actors/runtime/store/blob-store.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { type LfsObject, lfsBlob } from "../../../schemas/repositories/lfs.ts";
import { PACK_HELD_MS } from "../../../schemas/repositories/limits.ts";
import type { AccountStorage } from "../packs/account-storage.ts";
import type { PackStore, PackStoreOptions } from "../packs/pack-store.ts";

export type LfsBlobs = Pick<BlobStore, "put" | "get" | "part" | "isWhole">;

/** A stored object that cannot be deleted before `until` (`performance.now()` time). */
export interface KeptLfsObject extends LfsObject {
  until: number;
}

export class LfsStore {
  readonly #blobs: LfsBlobs;
  readonly #packs: Pick<PackStore, "hold">;
  readonly #storage: AccountStorage;
  readonly #heldMs: number;

  constructor(
    blobs: LfsBlobs,
    packs: Pick<PackStore, "hold">,
    { storage, heldMs = PACK_HELD_MS }: PackStoreOptions,
  ) {
    this.#blobs = blobs;
    this.#packs = packs;
    this.#storage = storage;
    this.#heldMs = heldMs;
  }

  /**
   * Stores a large file. Resolves when the file is durable and the sweep cannot delete it for a limited time. Refuses
   * content that does not match its id with `content_differs`, and deletes it. Refuses a file past the account's
   * limit with `storage_full`.
   */
  async put(
    accountId: string,
    object: LfsObject,
    content: AsyncIterable<Uint8Array>,
    signal: AbortSignal,
  ): Promise<KeptLfsObject> {
    const name = lfsBlob(accountId, object.oid);
    let until = 0;
    const checked = checkedAs(object, content, () => {
      until = performance.now() + this.#heldMs;
    });
    const put = () => this.#blobs.put(name, checked, { signal });
    const thing = { accountId, bytes: object.bytes };
    const { wasThere } = await this.#storage.store(thing, put, signal);
    if (wasThere === false) return { ...object, until };
    // The file was stored before. If no repository has named it for a long time, the sweep may be about to delete it,
    // or has just deleted it.
    const held = await this.#packs.hold(accountId, [object.oid], signal, "lfs");
    if (!(await this.#blobs.isWhole(name))) {
      const text =
        "Cannot store: an interrupted upload still holds the name; try again in some minutes";
      throw new ActorError("unavailable", text, { retryAfterS: 60 });
    }
    return { ...object, until: Math.min(held, performance.now() + this.#heldMs) };
  }

  /**
   * Reads the bytes from `start` to `end`, both included. A whole file is checked against its name; a part of a file
   * cannot be checked.
   */
  read(
    accountId: string,
    { oid, bytes }: LfsObject,
    { start, end }: { start: number; end: number },
    signal: AbortSignal,
  ): AsyncIterable<Uint8Array> {
    const name = lfsBlob(accountId, oid);
    return start === 0 && end === bytes - 1
      ? this.#blobs.get(name, { signal })
      : this.#blobs.part(name, { start, end }, { signal });
  }
}

/** Yields the content and checks its size and hash. Calls `ended` before the last chunk is stored. */
async function* checkedAs(
  { oid, bytes }: LfsObject,
  content: AsyncIterable<Uint8Array>,
  ended: () => void,
): AsyncGenerator<Uint8Array> {
  const hash = createHash("sha256");
  let came = 0;
  for await (const chunk of content) {
    came += chunk.length;
    if (came > bytes) throw differs(`more than ${bytes} bytes came`);
    hash.update(chunk);
    yield chunk;
  }
  if (came !== bytes) throw differs(`${came} bytes came, and ${bytes} were promised`);
  const found = hash.digest("hex");
  if (found !== oid) throw differs(`its SHA-256 is ${found}, and ${oid} was promised`);
  ended();
}

const differs = (what: string) => new ActorError("content_differs", `Cannot store: ${what}`);

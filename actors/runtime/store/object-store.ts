/**
 * An object store of NATS (ADR-20), so that operators can read stored objects with `nats object`. Objects are written
 * with the library, but read piece by piece without it, because the library buffers a whole object in memory for a
 * slow reader.
 */
import { createHash, type Hash } from "node:crypto";
import { JetStreamApiError } from "@nats-io/jetstream";
import {
  type ObjectStore as NatsObjectStore,
  type ObjectInfo,
  Objm,
  setSha256Backend,
} from "@nats-io/obj";
import { ActorError } from "../../../schemas/errors.ts";
import { BLOB_CHUNK_BYTES } from "../../../schemas/limits.ts";
import { objectSubjects } from "../../../schemas/subjects.ts";
import { STORE_IS_FULL } from "../bus/atomic-batch.ts";
import type { Bus } from "../bus/bus.ts";
import { persist } from "../bus/persist.ts";
import type { Clock } from "../lib/clock.ts";

/** How long the process caches the size of the store, which an operator may change. */
const CAPACITY_KNOWN_MS = 60_000;

/** A stored object: its size, and its bytes in order. */
interface StoredObject {
  bytes: number;
  chunks: AsyncIterable<Uint8Array>;
}

interface PutOptions {
  /** Shown by `nats object info`. */
  description?: string;
}

export class ObjectStore {
  readonly #bus: Bus;
  readonly #clock: Clock;
  readonly #bucket: string;
  readonly #stream: string;
  readonly #bytesMax: number;
  #store: Promise<NatsObjectStore> | undefined;
  #capacity: { bytes: number; at: number } | undefined;

  /** `bytesMax` counts as the capacity if the stream has no limit of its own. It sets no limit. */
  constructor(
    bus: Bus,
    clock: Clock,
    { bucket, stream, bytesMax }: { bucket: string; stream: string; bytesMax: number },
  ) {
    this.#bus = bus;
    this.#clock = clock;
    this.#bucket = bucket;
    this.#stream = stream;
    this.#bytesMax = bytesMax;
  }

  /** Stores bytes, and retries while the bus is away. Rejects with `storage_full` or `unavailable`. */
  async putBytes(name: string, bytes: Uint8Array, options: PutOptions = {}): Promise<void> {
    const write = () => this.#bus.whileConnected(() => this.put(name, once(bytes), options));
    await persist(this.#clock, `store ${name}`, write);
  }

  /**
   * Stores an object and resolves with its size. As soon as the object is stored completely, it replaces an object of
   * the same name. Rejects with `storage_full`, with the error of the content, or with an error of the bus, after
   * which the caller may retry.
   */
  async put(
    name: string,
    content: AsyncIterable<Uint8Array>,
    { description = "" }: PutOptions = {},
  ): Promise<number> {
    const store = await this.#open();
    const iterator = content[Symbol.asyncIterator]();
    try {
      const meta = { name, description, options: { max_chunk_size: BLOB_CHUNK_BYTES } };
      const source = ReadableStream.from({ [Symbol.asyncIterator]: () => iterator });
      const { size } = await store.put(meta, source as ReadableStream<Uint8Array>);
      return size;
    } catch (error) {
      const isFull = error instanceof JetStreamApiError && STORE_IS_FULL.has(error.code);
      if (!isFull) throw error;
      const full = new ActorError("storage_full", "Cannot store the result: the store is full");
      throw Object.assign(full, { cause: error });
    } finally {
      // The library does not close its source when a write fails.
      await iterator.return?.();
    }
  }

  /**
   * Resolves with the object, or undefined if it does not exist. The bytes arrive no faster than the caller reads them.
   */
  async get(name: string, signal?: AbortSignal): Promise<StoredObject | undefined> {
    const info = await this.#info(name, signal);
    if (!info || info.deleted) return undefined;
    return { bytes: info.size, chunks: this.#read(info, signal) };
  }

  /**
   * Removes an object, if it exists. A reader of the object gets an error. The library's own removal would first
   * write a mark, for which a full store has no room.
   */
  async remove(name: string): Promise<void> {
    const store = await this.#open();
    const { streams } = this.#bus.jetstream;
    const remove = () =>
      this.#bus.whileConnected(async () => {
        const info = await store.info(name);
        if (!info || info.deleted) return;
        const subjects = objectSubjects(this.#bucket);
        // In this order, a removal that breaks off can be repeated.
        await streams.purge(this.#stream, { filter: subjects.pieces(info.nuid) });
        await streams.purge(this.#stream, { filter: subjects.about(name) });
      });
    await persist(this.#clock, `remove ${name}`, remove);
  }

  /**
   * Returns how many bytes the whole store may hold. If an operator has made the stream unlimited, returns
   * `bytesMax`.
   */
  async capacity(): Promise<number> {
    const now = this.#clock.monotonic();
    if (this.#capacity && now - this.#capacity.at < CAPACITY_KNOWN_MS) return this.#capacity.bytes;
    const { streams } = this.#bus.jetstream;
    const look = () => this.#bus.whileConnected(() => streams.info(this.#stream));
    const { config } = await persist(this.#clock, `look at ${this.#bucket}`, look);
    const bytes = config.max_bytes > 0 ? config.max_bytes : this.#bytesMax;
    this.#capacity = { bytes, at: now };
    return bytes;
  }

  async *#read(info: ObjectInfo, signal: AbortSignal | undefined): AsyncGenerator<Uint8Array> {
    const { name, nuid, size, chunks, digest } = info;
    const pieces = objectSubjects(this.#bucket).pieces(nuid);
    const hash = createHash("sha256");
    let [bytes, from] = [0, 1];
    for (let index = 0; index < chunks; index++) {
      const read = async () =>
        (await this.#bus.whileConnected(() => this.#bus.readNext(this.#stream, pieces, from))) ??
        (await this.#bus.readNextOfLeader(this.#stream, pieces, from));
      const piece = await persist(this.#clock, `read ${name}`, read, signal);
      if (!piece) {
        throw new ActorError("not_found", `Cannot read ${name}: it was removed meanwhile`);
      }
      from = piece.seq + 1;
      bytes += piece.data.length;
      hash.update(piece.data);
      if (index === chunks - 1 && (bytes !== size || digestOf(hash) !== digest)) {
        throw new Error(`Cannot read ${name}: its ${bytes} bytes are not those that were written`);
      }
      yield piece.data;
    }
  }

  async #info(name: string, signal: AbortSignal | undefined): Promise<ObjectInfo | undefined> {
    const store = await this.#open();
    const look = () => this.#bus.whileConnected(() => store.info(name));
    return (await persist(this.#clock, `look at ${name}`, look, signal)) ?? undefined;
  }

  /** The bucket is declared with the streams, so its existence is not checked here. */
  #open(): Promise<NatsObjectStore> {
    // By default the library hashes in JavaScript.
    setSha256Backend("native");
    this.#store ??= new Objm(this.#bus.jetstream.jetstream()).open(this.#bucket, false);
    return this.#store;
  }
}

/** Returns the digest in the form of ADR-20: URL-safe base64 with padding. */
const digestOf = (hash: Hash) =>
  `SHA-256=${hash.digest("base64").replaceAll("+", "-").replaceAll("/", "_")}`;

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

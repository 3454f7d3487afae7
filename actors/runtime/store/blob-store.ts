/**
 * Stores large or append-only content: written once under a unique name, read as a stream, kept until it is removed.
 */
import { createHash, randomBytes } from "node:crypto";
import type { StoredMsg } from "@nats-io/jetstream";
import { ActorError } from "../../../schemas/errors.ts";
import {
  BLOB_CHUNK_BYTES,
  BLOB_CHUNKS_IN_FLIGHT,
  CALL_RETRY_MS_MAX,
} from "../../../schemas/limits.ts";
import {
  type BLOB_STREAMS,
  type BlobSubjects,
  blobFamily,
  blobNameOf,
  blobSubjects,
} from "../../../schemas/subjects.ts";
import { bytesInStream, type Write, WriteRefused, writeAtomically } from "../bus/atomic-batch.ts";
import type { Bus } from "../bus/bus.ts";
import { firstTwoTokens } from "../bus/first-two-tokens.ts";
import { persist } from "../bus/persist.ts";
import { chunksOf } from "../lib/chunks.ts";
import type { Clock } from "../lib/clock.ts";
import { PieceEncoder } from "./blob-encoding.ts";
import {
  bytesOf,
  groupsOf,
  type Head,
  headOf,
  type SmallBlob,
  type StoredBlob,
  smallWriteOf,
  writeOf,
} from "./blob-messages.ts";

/**
 * Up to this number of blobs, single puts are faster than a batch (measured: 2.5 ms per batch, whatever its size).
 */
export const SINGLE_PUTS_MAX = 8;

/** How long a failed writer tries to remove its pieces. The remaining pieces are removed with the blob's name. */
const BLOB_CLEAN_UP_MS = 2_000;

interface BlobOptions {
  /** Seconds, at least 1, after which the blob expires; without it the blob stays until it is removed. */
  ttlS?: number | undefined;
  /** Ends the write with the signal's reason, until its last message is sent. */
  signal?: AbortSignal | undefined;
}

const NOTHING = new Uint8Array();

/**
 * Names are tokens of `[A-Za-z0-9_-]` with dots between them; the first token chooses the stream (`BLOB_STREAMS`). A
 * blob exists as soon as its head exists. The head is written last, so a partly written blob does not exist. Rejects
 * with ActorError `not_found`, `conflict` (the name has another content), `storage_full` and `unavailable`.
 */
export class BlobStore {
  readonly #bus: Bus;
  readonly #clock: Clock;

  constructor(bus: Bus, clock: Clock) {
    this.#bus = bus;
    this.#clock = clock;
  }

  /**
   * Stores a blob; repeating it with the same content is no error. Holds a few chunks in memory, whatever the blob's
   * size.
   */
  async put(
    name: string,
    content: Uint8Array | AsyncIterable<Uint8Array>,
    { ttlS, signal }: BlobOptions = {},
  ): Promise<StoredBlob> {
    const blob = this.#subjectsOf(name);
    const hash = createHash("sha256");
    // Two writers of one name share only the head, so the pieces of a dead writer do not disturb another writer.
    const writer = randomBytes(9).toString("base64url");
    const encoder = new PieceEncoder(name);
    const underWay: Promise<unknown>[] = [];
    let [bytes, storedBytes, chunks] = [0, 0, 0];
    let last: Uint8Array | undefined;
    let known: Head | undefined;
    let mayBeStored = false;
    try {
      for await (const chunk of chunksOf(content, BLOB_CHUNK_BYTES)) {
        signal?.throwIfAborted();
        if (last) {
          if (chunks === 0) known = (await this.#readHead(blob, name, signal))?.head;
          const piece = known ? { payload: last, headers: {} } : await encoder.encode(last);
          const write = writeOf(blob.chunk(writer, chunks), piece, ttlS);
          storedBytes += bytesInStream(write);
          if (!known) underWay.push(noticedLater(this.#write(name, write, signal)));
          if (underWay.length >= BLOB_CHUNKS_IN_FLIGHT) await underWay.shift();
          chunks += 1;
        }
        hash.update(chunk);
        bytes += chunk.length;
        last = chunk;
      }
      await Promise.all(underWay);
      const head = { bytes, sha256: hash.digest("hex"), chunks, writer };
      const write = writeOf(blob.head, await encoder.encode(last ?? NOTHING), ttlS, head);
      storedBytes += bytesInStream(write);
      signal?.throwIfAborted();
      mayBeStored = true;
      const wasKnown = known !== undefined;
      known ??= await this.#writeHead(blob, name, write, head);
      mayBeStored = known.writer === head.writer;
      if (known.sha256 !== head.sha256 || known.bytes !== bytes) {
        throw new ActorError("conflict", `Cannot store ${name}: it has another content already`);
      }
      if (chunks > 0 && !mayBeStored) await this.#removeChunks(blob, name, writer);
      // If the acknowledgement of this writer's head was lost, a repetition finds the head.
      return { name, bytes, storedBytes, wasThere: wasKnown || known.writer !== writer };
    } catch (error) {
      await Promise.allSettled(underWay);
      // A head whose write had no answer may still be stored, and then needs the pieces.
      if (chunks > 0 && !mayBeStored) await this.#removeChunks(blob, name, writer);
      throw error;
    }
  }

  /** Stores blobs as `put` does, in as few writes as possible. If this rejects, some of the blobs may be stored. */
  async putAll(blobs: readonly SmallBlob[]): Promise<StoredBlob[]> {
    const stored: StoredBlob[] = [];
    for (const group of groupsOf(blobs, (name) => this.#subjectsOf(name).stream)) {
      const batch = group.length > SINGLE_PUTS_MAX && (await this.#putBatch(group));
      if (batch) stored.push(...batch);
      for (let from = 0; !batch && from < group.length; from += SINGLE_PUTS_MAX) {
        const some = group.slice(from, from + SINGLE_PUTS_MAX);
        const puts = some.map(({ name, content }) => this.put(name, content));
        stored.push(...(await Promise.all(puts)));
      }
    }
    return stored;
  }

  /**
   * Reads the bytes of a blob in order. Verifies the SHA-256 before it returns the last bytes. Reads a few chunks
   * ahead of its reader, and stops when the reader stops.
   */
  async *get(
    name: string,
    { signal }: Pick<BlobOptions, "signal"> = {},
  ): AsyncGenerator<Uint8Array, void, undefined> {
    const blob = this.#subjectsOf(name);
    const found = await this.#readHead(blob, name, signal);
    if (!found) throw new ActorError("not_found", `Cannot read ${name}: there is no such blob`);
    const { head, content } = found;
    const hash = createHash("sha256");
    const ahead: Promise<Uint8Array>[] = [];
    let [bytes, next] = [0, 0];
    for (let index = 0; index <= head.chunks; index++) {
      for (; next < head.chunks && ahead.length < BLOB_CHUNKS_IN_FLIGHT; next++) {
        const subject = blob.chunk(head.writer ?? "", next);
        ahead.push(noticedLater(this.#readChunk(blob, { name, subject, head }, signal)));
      }
      const chunk = (await ahead.shift()) ?? content;
      signal?.throwIfAborted();
      hash.update(chunk);
      bytes += chunk.length;
      if (index === head.chunks && (bytes !== head.bytes || hash.digest("hex") !== head.sha256)) {
        throw new Error(`Cannot read ${name}: its ${bytes} bytes are not those that were written`);
      }
      if (chunk.length > 0) yield chunk;
    }
  }

  /** Reads some bytes of a blob, from `start` to `end` inclusive, without a check of the hash. */
  async *part(
    name: string,
    { start, end }: { start: number; end: number },
    { signal }: Pick<BlobOptions, "signal"> = {},
  ): AsyncGenerator<Uint8Array, void, undefined> {
    const blob = this.#subjectsOf(name);
    const found = await this.#readHead(blob, name, signal);
    if (!found) throw new ActorError("not_found", `Cannot read ${name}: there is no such blob`);
    const { head, content } = found;
    // All pieces except the last have the same size, which may differ from the present BLOB_CHUNK_BYTES.
    const size = head.chunks > 0 ? (head.bytes - content.length) / head.chunks : 1;
    const ahead: Promise<Uint8Array>[] = [];
    let next = Math.min(Math.floor(start / size), head.chunks);
    for (let index = next; index <= head.chunks && index * size <= end; index++) {
      for (; next < head.chunks && next * size <= end && ahead.length < BLOB_CHUNKS_IN_FLIGHT; ) {
        const subject = blob.chunk(head.writer ?? "", next++);
        ahead.push(noticedLater(this.#readChunk(blob, { name, subject, head }, signal)));
      }
      const chunk = (await ahead.shift()) ?? content;
      signal?.throwIfAborted();
      const from = index * (head.chunks > 0 ? size : 0);
      const piece = chunk.subarray(Math.max(0, start - from), end + 1 - from);
      if (piece.length > 0) yield piece;
    }
  }

  /** The size of a blob in bytes, or undefined where it does not exist. */
  async size(name: string): Promise<number | undefined> {
    return (await this.#readHead(this.#subjectsOf(name), name))?.head.bytes;
  }

  async has(name: string): Promise<boolean> {
    return (await this.size(name)) !== undefined;
  }

  /**
   * Returns whether all messages of a blob are stored. Asks the stream's leader, so that a blob that was just removed
   * does not count.
   */
  async isWhole(name: string): Promise<boolean> {
    const { stream, head, writtenBy } = this.#subjectsOf(name);
    const found = await this.#ofLeader(name, () => this.#bus.readLast(stream, head));
    if (!found) return false;
    const { chunks, writer } = headOf(found);
    if (chunks === 0 || writer === undefined) return chunks === 0;
    const stored = await this.#ofLeader(name, () =>
      this.#bus.subjectsOf(stream, writtenBy(writer)),
    );
    return stored.length === chunks;
  }

  /** Returns the bytes of the stream of a blob, their limit or Infinity, and when the stream was created. */
  async streamUse(name: string): Promise<{ bytes: number; bytesMax: number; createdAt: string }> {
    const { stream } = this.#subjectsOf(name);
    const { streams } = this.#bus.jetstream;
    const { state, config, created } = await this.#ofLeader(name, () => streams.info(stream));
    const bytesMax = config.max_bytes > 0 ? config.max_bytes : Number.POSITIVE_INFINITY;
    return { bytes: state.bytes, bytesMax, createdAt: created };
  }

  /**
   * Returns the names of the blobs whose names continue this prefix after a dot, and the number of stored messages of
   * each. `prefix` must have at least two tokens.
   */
  async messagesBeneath(prefix: string): Promise<ReadonlyMap<string, number>> {
    const { stream, beneath } = this.#subjectsOf(prefix);
    const subjects = await this.#ofLeader(prefix, () => this.#bus.subjectsOf(stream, beneath));
    const messages = new Map<string, number>();
    for (const name of subjects.map(blobNameOf)) messages.set(name, (messages.get(name) ?? 0) + 1);
    return messages;
  }

  /** Names of all blobs that begin with this token, including blobs of which only parts are stored. */
  async names(family: keyof typeof BLOB_STREAMS): Promise<Set<string>> {
    const streams = blobFamily(family, this.#bus.layout.packStreams);
    const subjects = await Promise.all(
      streams.map(({ stream, all }) =>
        this.#ofLeader(family, () => this.#bus.subjectsOf(stream, all)),
      ),
    );
    return new Set(subjects.flat().map(blobNameOf));
  }

  /** The last sequence of a blob's messages; later writes have higher ones. */
  async lastSequence(name: string): Promise<number | undefined> {
    const { stream, all } = this.#subjectsOf(name);
    return (await this.#ofLeader(name, () => this.#bus.readLast(stream, all)))?.seq;
  }

  /** Removes a blob's messages up to this sequence. */
  async removeUpTo(name: string, sequence: number): Promise<void> {
    const { stream, all } = this.#subjectsOf(name);
    const options = { filter: all, seq: sequence + 1 };
    await this.#ofLeader(name, () => this.#bus.jetstream.streams.purge(stream, options));
  }

  /** Removes a blob, if it exists. A reader of the blob may be refused. */
  async remove(name: string): Promise<void> {
    const { stream, all } = this.#subjectsOf(name);
    await this.#purge(stream, all, name);
  }

  /**
   * Removes the blob of this name, and all blobs whose names continue this name after a dot. `prefix` must have at
   * least two tokens.
   */
  async removeAll(prefix: string): Promise<void> {
    const { stream, beneath } = this.#subjectsOf(prefix);
    await this.#purge(stream, beneath, prefix);
  }

  /** Stores the blobs in one batch. Resolves with undefined if that fails: each must then be written separately. */
  async #putBatch(group: readonly SmallBlob[]): Promise<StoredBlob[] | undefined> {
    const encoded = group.map(async (blob) => {
      const { name, content } = blob;
      const write = await smallWriteOf(this.#subjectsOf(name).head, blob);
      return { write, name, bytes: content.length, storedBytes: bytesInStream(write, true) };
    });
    try {
      const blobs = await Promise.all(encoded);
      const writes = blobs.map(({ write }) => write);
      await writeAtomically(this.#bus, writes);
      return blobs.map(({ write, ...stored }) => stored);
    } catch {
      return undefined; // Each blob is then written alone, and that write reports its own error.
    }
  }

  /**
   * Writes the head. Returns the stored head: `head`, or the head of an earlier writer. The signal of `put` does not
   * end this write: the bus may store the head all the same, and the caller would take the blob for not stored.
   */
  async #writeHead(blob: BlobSubjects, name: string, write: Write, head: Head): Promise<Head> {
    for (;;) {
      if (await this.#write(name, write, undefined)) return head;
      const stored = await this.#readHead(blob, name);
      if (stored) return stored.head;
      // The head that refused this write was removed before it could be read. So try again.
      await this.#clock.wait(CALL_RETRY_MS_MAX);
    }
  }

  /**
   * Writes a message. Returns false if the subject surely holds one. While the stream only says that a write to the
   * subject is in process, the write is repeated, because a new leader may drop the other write.
   */
  async #write(name: string, write: Write, signal: AbortSignal | undefined): Promise<boolean> {
    try {
      const once = () => writeAtomically(this.#bus, [write]);
      await persist(this.#clock, `store ${name}`, once, signal);
      return true;
    } catch (error) {
      if (!(error instanceof WriteRefused)) throw error;
      if (error.conflict) return false;
      const text = `Cannot store ${name}: the bus refuses to`;
      const refusal = error.full
        ? new ActorError("storage_full", `Cannot store ${name}: the store is full`)
        : new ActorError("unavailable", text, { retryAfterS: 1 });
      throw Object.assign(refusal, { cause: error });
    }
  }

  async #readHead(
    blob: BlobSubjects,
    name: string,
    signal?: AbortSignal,
  ): Promise<{ head: Head; content: Uint8Array } | undefined> {
    const message = await this.#read(blob, name, blob.head, signal);
    if (!message) return undefined;
    const head = headOf(message);
    return { head, content: await bytesOf(message, head) };
  }

  async #readChunk(
    blob: BlobSubjects,
    { name, subject, head }: { name: string; subject: string; head: Head },
    signal: AbortSignal | undefined,
  ): Promise<Uint8Array> {
    const message = await this.#read(blob, name, subject, signal);
    if (message) return await bytesOf(message, head);
    throw new ActorError("not_found", `Cannot read ${name}: it was removed meanwhile`);
  }

  /** Any replica may return a message; only the leader can say that there is none. */
  #read(
    { stream }: BlobSubjects,
    name: string,
    subject: string,
    signal: AbortSignal | undefined,
  ): Promise<StoredMsg | undefined> {
    const { jetstream, readLimits } = this.#bus;
    const { direct } = jetstream;
    const read = async () => {
      const query = { last_by_subj: subject };
      const found = await this.#bus.whileConnected(() => direct.getMessage(stream, query));
      return found ?? (await this.#bus.readLast(stream, subject));
    };
    const ask = () => readLimits.chunks.run(firstTwoTokens(name), read, signal);
    return persist(this.#clock, `read ${name}`, ask, signal);
  }

  #subjectsOf(name: string): BlobSubjects {
    return blobSubjects(name, this.#bus.layout.packStreams);
  }

  #ofLeader<T>(name: string, ask: () => Promise<T>): Promise<T> {
    return persist(this.#clock, `look at ${name}`, () => this.#bus.whileConnected(ask), undefined);
  }

  /** Removes a writer's pieces. If this fails, the pieces are removed with the blob's name. */
  async #removeChunks(blob: BlobSubjects, name: string, writer: string): Promise<void> {
    const patience = AbortSignal.timeout(BLOB_CLEAN_UP_MS);
    await this.#purge(blob.stream, blob.writtenBy(writer), name, patience).catch(() => {});
  }

  async #purge(stream: string, filter: string, name: string, signal?: AbortSignal): Promise<void> {
    const { streams } = this.#bus.jetstream;
    const purge = () => this.#bus.whileConnected(() => streams.purge(stream, { filter }));
    await persist(this.#clock, `remove ${name}`, purge, signal);
  }
}

/** Lets a promise fail before it is awaited, without an unhandled rejection. */
function noticedLater<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

/**
 * An agent's database as a log of changed pages. A record holds the pages that SQLite has committed to its
 * write-ahead file since the last record. They are XORed with their previous versions and compressed. A new owner
 * applies the records to an image and gets the same file, byte for byte.
 */
import { fstatSync, readFileSync, readSync, rmSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { constants as zlib, zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { AGENT_DATABASE_BYTES_MAX } from "../../../schemas/apps/limits.ts";
import { closeWalFile, walFile } from "./wal-files.ts";
import { packZeroRuns, unpackZeroRuns } from "./zero-runs.ts";

/** Size of a page. Small pages make small records, because a turn changes only about five of them. */
export const PAGE_BYTES = 1024;
/** Limit of the bytes of one SQL text, which is stored with its prepared statement. */
export const SQL_BYTES_MAX = 1_000_000;
/** Bytes of the write-ahead file's header and of the header of each page (SQLite's file format, section 4.1). */
const WAL_HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
/** Header of a record: page size and number of pages. */
const RECORD_HEADER_BYTES = 8;
/**
 * Above this size, the write-ahead file is merged into the database. The file takes memory if the work folder is in
 * memory.
 */
const WAL_BYTES_MAX = 4 * 1024 * 1024;
/** Size limit of an unpacked record: pages of the whole database, with their numbers. */
const RECORD_BYTES_MAX = 2 * AGENT_DATABASE_BYTES_MAX;
/** Up to this packed size, a change of a few pages is stored as its changed words, without compression. */
const SMALL_BYTES_MAX = 2 * 1024;
const FEW_BYTES_MAX = 16 * PAGE_BYTES;
/**
 * The first bytes of zstd data (RFC 8878, section 3.1.1). The other packed form begins with its length, and no record
 * is that long, so the two forms can be distinguished.
 */
const ZSTD_MAGIC = 0xfd2fb528;
const FAST = { [zlib.ZSTD_c_compressionLevel]: 1 };
/**
 * A buffer for a growing image is this much larger than the image, so that the image is copied only after it grew by
 * a quarter.
 */
const ROOM_SHARE = 1.25;

export class PageLog {
  readonly database: DatabaseSync;
  readonly #path: string;
  /** The database as of the last record. */
  #image: Buffer;
  /** A buffer that begins with the image and has room for growth. */
  #room: Buffer;
  readonly #walPath: string;
  /** Position up to which the write-ahead file was read. It is always the end of a commit. */
  #read = 0;
  /** Pages changed since the last record. */
  #changed = new Map<number, Buffer>();
  #pages: number;
  #isDirty = false;

  /** Size limit of the database. */
  readonly bytesMax: number;

  constructor(path: string, image: Buffer, bytesMax = AGENT_DATABASE_BYTES_MAX) {
    this.#path = path;
    this.#walPath = `${path}-wal`;
    this.bytesMax = bytesMax;
    removeDatabase(path);
    if (image.length > 0) writeFileSync(path, image, { mode: 0o600 });
    this.database = new DatabaseSync(path, {
      enableForeignKeyConstraints: true,
      limits: { length: bytesMax, sqlLength: SQL_BYTES_MAX },
    });
    // The database is locked exclusively before the write-ahead file is first used, so SQLite needs no third file
    // (-shm). Without cache spilling, the write-ahead file contains only committed pages.
    this.database.exec(
      `PRAGMA page_size=${PAGE_BYTES}; PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF;
      PRAGMA wal_autocheckpoint=0; PRAGMA cache_spill=OFF; PRAGMA temp_store=MEMORY;
      PRAGMA max_page_count=${Math.floor(bytesMax / PAGE_BYTES)}; PRAGMA wal_checkpoint(TRUNCATE)`,
    );
    const file = readFileSync(path);
    this.#image = image;
    this.#room = image;
    this.#pages = file.length / PAGE_BYTES;
    // SQLite wrote the first page of a new file, which no record contains yet.
    for (let number = 1; number <= this.#pages; number += 1) {
      const page = pageOf(file, number);
      if (!page.equals(pageOf(image, number))) this.#changed.set(number, page);
    }
  }

  /** True if something was committed since the last record. */
  get isDirty(): boolean {
    return this.#isDirty || this.#walBytes() > this.#read;
  }

  /** A text that changes with each commit of the database. */
  get position(): string {
    return `${this.#folded}:${this.#walBytes()}`;
  }
  #folded = 0;

  get bytes(): number {
    return this.#pages * PAGE_BYTES;
  }

  /** Bytes of pages changed since the last record, before compression. */
  get changedBytes(): number {
    return this.#changed.size * PAGE_BYTES + Math.max(0, this.#walBytes() - this.#read);
  }

  /**
   * Marks all earlier writes as ones that every owner repeats anyway. They are stored with the first record that has
   * other changes.
   */
  settle(): void {
    this.absorb();
    this.#isDirty = false;
  }

  /** Reads committed pages and keeps the write-ahead file small. Not allowed within a transaction. */
  absorb(): void {
    const size = this.#walBytes();
    const from = Math.max(this.#read, WAL_HEADER_BYTES);
    const file = walFile(this.#walPath);
    if (file === undefined || size <= from) return;
    const bytes = Buffer.allocUnsafe(size - from);
    readSync(file, bytes, 0, bytes.length, from);
    let uncommitted = new Map<number, Buffer>();
    const step = FRAME_HEADER_BYTES + PAGE_BYTES;
    for (let at = 0; at + step <= bytes.length; at += step) {
      const page = bytes.subarray(at + FRAME_HEADER_BYTES, at + step);
      uncommitted.set(bytes.readUInt32BE(at), page);
      const pages = bytes.readUInt32BE(at + 4);
      if (pages === 0) continue;
      // The pages are copied, because a part of the buffer would keep the whole buffer with all versions in memory.
      for (const [number, last] of uncommitted) this.#note(number, last);
      uncommitted = new Map();
      this.#pages = pages;
      this.#read = from + at + step;
      this.#isDirty = true;
    }
    if (size > WAL_BYTES_MAX) this.#fold();
  }

  /**
   * Notes a changed page. A page that changed before is overwritten in place: small buffers share memory, and one
   * remaining buffer would keep all of it.
   */
  #note(number: number, page: Buffer): void {
    const known = this.#changed.get(number);
    if (known === undefined) this.#changed.set(number, Buffer.from(page));
    else page.copy(known);
  }

  /** Returns a record of all changes since the last record; undefined if there are none. */
  take(): Uint8Array | undefined {
    this.absorb();
    if (!this.#isDirty) return undefined;
    this.#resize(this.#pages * PAGE_BYTES);
    const image = this.#image;
    const numbers = [...this.#changed.keys()].filter((number) => number <= this.#pages);
    const record = Buffer.alloc(RECORD_HEADER_BYTES + numbers.length * (4 + PAGE_BYTES));
    record.writeUInt32BE(PAGE_BYTES, 0);
    record.writeUInt32BE(this.#pages, 4);
    let at = RECORD_HEADER_BYTES;
    for (const number of numbers) {
      const page = this.#changed.get(number) as Buffer;
      const before = pageOf(image, number);
      record.writeUInt32BE(number, at);
      xor(record.subarray(at + 4, at + 4 + PAGE_BYTES), page, before);
      page.copy(before);
      at += 4 + PAGE_BYTES;
    }
    this.#changed = new Map();
    this.#isDirty = false;
    return pack(record);
  }

  /** Returns the whole database as of the last record. */
  takeImage(): Uint8Array {
    return pack(this.#image);
  }

  close(): void {
    closeWalFile(this.#walPath);
    this.database.close();
    removeDatabase(this.#path);
  }

  /**
   * Resizes the image. New pages are empty. Free space after the image avoids a copy each time it grows by a page.
   */
  #resize(bytes: number): void {
    const { length } = this.#image;
    if (bytes > this.#room.length) {
      const room = Math.min(bytes * ROOM_SHARE, this.bytesMax);
      this.#room = Buffer.alloc(Math.max(bytes, room));
      this.#image.copy(this.#room);
    } else if (bytes < length) this.#room.fill(0, bytes, length);
    this.#image = this.#room.subarray(0, bytes);
  }

  #fold(): void {
    this.database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    this.#folded += 1;
    this.#read = 0;
  }

  #walBytes(): number {
    const file = walFile(this.#walPath);
    return file === undefined ? 0 : fstatSync(file).size;
  }
}

/** Applies `records` to an image; both come from `PageLog`. */
export function restoreImage(image: Uint8Array | undefined, records: Uint8Array[]): Buffer {
  const whole = image === undefined || image.length === 0 ? Buffer.alloc(0) : unpack(image);
  // A record without bytes changes nothing. A new owner writes one to fence out the previous owner.
  return records.filter(({ length }) => length > 0).reduce(applyRecord, whole);
}

function applyRecord(image: Buffer, packed: Uint8Array): Buffer {
  const record = unpack(packed);
  const pageBytes = record.readUInt32BE(0);
  const next = resized(image, record.readUInt32BE(4) * pageBytes);
  for (let at = RECORD_HEADER_BYTES; at < record.length; at += 4 + pageBytes) {
    const start = (record.readUInt32BE(at) - 1) * pageBytes;
    const page = next.subarray(start, start + pageBytes);
    xor(page, page, record.subarray(at + 4, at + 4 + pageBytes));
  }
  return next;
}

/** Returns a record without changes, for callers that wait for its number. */
export function emptyRecord(): Uint8Array {
  return new Uint8Array(0);
}

/** Compresses bytes. The size is given in advance, so that zstd's buffers are no larger than needed. */
function pack(bytes: Buffer): Uint8Array {
  const small = bytes.length <= FEW_BYTES_MAX ? packZeroRuns(bytes, SMALL_BYTES_MAX) : undefined;
  return small ?? zstdCompressSync(bytes, { params: FAST, pledgedSrcSize: bytes.length });
}

function unpack(bytes: Uint8Array): Buffer {
  const { buffer, byteOffset, byteLength } = bytes;
  const isZstd = new DataView(buffer, byteOffset, byteLength).getUint32(0, true) === ZSTD_MAGIC;
  if (!isZstd) return unpackZeroRuns(bytes, RECORD_BYTES_MAX);
  return zstdDecompressSync(bytes, { maxOutputLength: RECORD_BYTES_MAX });
}

function pageOf(image: Buffer, number: number): Buffer {
  return image.subarray((number - 1) * PAGE_BYTES, number * PAGE_BYTES);
}

function resized(image: Buffer, bytes: number): Buffer {
  if (image.length === bytes) return image;
  const next = Buffer.alloc(bytes);
  image.copy(next, 0, 0, Math.min(image.length, bytes));
  return next;
}

/** XORs two pages. If all buffers are aligned, which is the usual case, it processes four bytes at a time. */
function xor(target: Buffer, one: Buffer, other: Buffer): void {
  const isAligned = [target, one, other].every(({ byteOffset }) => byteOffset % 4 === 0);
  const [to, from, by] = isAligned
    ? [words(target), words(one), words(other)]
    : [target, one, other];
  for (let at = 0; at < to.length; at += 1) to[at] = (from[at] as number) ^ (by[at] as number);
}

function words({ buffer, byteOffset, byteLength }: Buffer): Uint32Array {
  return new Uint32Array(buffer, byteOffset, byteLength / 4);
}

function removeDatabase(path: string): void {
  for (const suffix of ["", "-wal", "-shm"]) rmSync(path + suffix, { force: true });
}

/** Builds a pack of whole objects, without deltas, and its index (gitformat-pack(5)). */
import { createHash } from "node:crypto";
import { setImmediate as others } from "node:timers/promises";
import { promisify } from "node:util";
import { crc32, deflate, deflateSync } from "node:zlib";
import type { MadeObject } from "./commit-changes.ts";

/** Bytes of small objects that are compressed before the event loop does other work: some ten milliseconds. */
const PACKED_AT_ONCE_BYTES = 512 * 1024;

export interface MadePack {
  pack: Buffer;
  index: Buffer;
}

const TYPES = { commit: 1, tree: 2, blob: 3 } as const;
const PACK_VERSION = 2;
const INDEX_HEAD = Buffer.from("ff744f6300000002", "hex");
/** Objects up to this size are compressed synchronously, because a handover to another thread would take longer. */
const SMALL_BYTES = 32 * 1024;

const deflated = promisify<Buffer, Buffer>(deflate);

export async function packOf(objects: readonly MadeObject[]): Promise<MadePack> {
  const head = Buffer.alloc(12);
  head.write("PACK");
  head.writeUInt32BE(PACK_VERSION, 4);
  head.writeUInt32BE(objects.length, 8);
  const parts: Buffer[] = [head];
  const entries: PackEntry[] = [];
  let offset = head.length;
  let atOnce = 0;
  for (const { id, type, content } of objects) {
    const isSmall = content.length <= SMALL_BYTES;
    const packed = isSmall ? deflateSync(content) : await deflated(content);
    atOnce = isSmall ? atOnce + content.length : 0;
    if (atOnce > PACKED_AT_ONCE_BYTES) {
      await others();
      atOnce = 0;
    }
    const entry = Buffer.concat([entryHead(TYPES[type], content.length), packed]);
    entries.push({ id: Buffer.from(id, "hex"), crc: crc32(entry), offset });
    parts.push(entry);
    offset += entry.length;
  }
  const sum = createHash("sha1");
  for (const part of parts) sum.update(part);
  const checksum = sum.digest();
  return { pack: Buffer.concat([...parts, checksum]), index: indexOf(entries, checksum) };
}

interface PackEntry {
  id: Buffer;
  crc: number;
  offset: number;
}

/**
 * Returns the header of an entry: a byte with the type and four bits of the size, then seven bits of the size in each
 * byte.
 */
function entryHead(type: number, size: number): Buffer {
  const bytes: number[] = [];
  let byte = (type << 4) | (size & 15);
  for (let rest = Math.floor(size / 16); rest > 0; rest = Math.floor(rest / 128)) {
    bytes.push(byte | 128);
    byte = rest & 127;
  }
  return Buffer.from([...bytes, byte]);
}

/**
 * Returns an index of version 2 for a pack of less than 2 GiB. It counts, for each byte value, the ids whose first
 * byte is not greater. The ids, checksums and offsets follow.
 */
function indexOf(entries: readonly PackEntry[], checksum: Buffer): Buffer {
  const sorted = [...entries].sort((one, other) => Buffer.compare(one.id, other.id));
  const fanout = Buffer.alloc(256 * 4);
  const sums = Buffer.alloc(4 * sorted.length);
  const offsets = Buffer.alloc(4 * sorted.length);
  let at = 0;
  for (let first = 0; first < 256; first++) {
    while (at < sorted.length && (sorted[at]?.id[0] ?? 0) <= first) at += 1;
    fanout.writeUInt32BE(at, 4 * first);
  }
  for (const [number, { crc, offset }] of sorted.entries()) {
    sums.writeUInt32BE(crc, 4 * number);
    offsets.writeUInt32BE(offset, 4 * number);
  }
  const ids = sorted.map(({ id }) => id);
  const index = Buffer.concat([INDEX_HEAD, fanout, ...ids, sums, offsets, checksum]);
  return Buffer.concat([index, createHash("sha1").update(index).digest()]);
}

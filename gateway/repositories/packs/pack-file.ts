/** Reads a small pack without git: the type and the decompressed size of each object (gitformat-pack(5)). */
import { constants, inflateSync } from "node:zlib";

export interface PackedObject {
  id: string;
  type: string;
  bytes: number;
}

const TYPES: Record<number, string> = { 1: "commit", 2: "tree", 3: "blob", 4: "tag" };
const OFFSET_DELTA = 6;
const REF_DELTA = 7;
const ID_BYTES = 20;
const FANOUT_AT = 8;
const IDS_AT = FANOUT_AT + 256 * 4;
const INDEX_MAGIC = 0xff744f63;
/** Compressed bytes of a delta that usually give its first bytes, which state the size of the object. */
const DELTA_HEAD_BYTES = 2_048;
/** Bytes of the two sizes at the start of a delta. A size has seven bits in each byte, and at most 64 bits. */
const DELTA_SIZES_BYTES = 20;

/** The index of a pack, version 2. */
export class PackIndex {
  readonly #bytes: Buffer;
  readonly count: number;

  constructor(bytes: Buffer) {
    if (bytes.readUInt32BE(0) !== INDEX_MAGIC)
      throw new Error("Cannot read index: another version");
    this.#bytes = bytes;
    this.count = countIn(bytes);
  }

  id(at: number): string {
    return this.#bytes.toString("hex", IDS_AT + at * ID_BYTES, IDS_AT + (at + 1) * ID_BYTES);
  }

  /** Returns the position of the id in the index, or -1. */
  find(id: Uint8Array): number {
    const first = id[0] ?? 0;
    let low = first === 0 ? 0 : this.#bytes.readUInt32BE(FANOUT_AT + 4 * (first - 1));
    let high = this.#bytes.readUInt32BE(FANOUT_AT + 4 * first);
    while (low < high) {
      const middle = (low + high) >> 1;
      const from = IDS_AT + middle * ID_BYTES;
      const order = this.#bytes.compare(id, 0, ID_BYTES, from, from + ID_BYTES);
      if (order === 0) return middle;
      if (order < 0) low = middle + 1;
      else high = middle;
    }
    return -1;
  }

  /** Returns the position of the object in a pack of less than 2 GiB. */
  offset(at: number): number {
    return this.#bytes.readUInt32BE(IDS_AT + this.count * (ID_BYTES + 4) + 4 * at);
  }
}

export const countIn = (index: Buffer) => index.readUInt32BE(FANOUT_AT + 4 * 255);

/** Returns all objects of a pack that git has checked. Throws Error if an object has an unknown type. */
export function readPack(pack: Buffer, index: PackIndex): PackedObject[] {
  return Array.from({ length: index.count }, (_, at) => {
    const entry = entryAt(pack, index.offset(at));
    return {
      id: index.id(at),
      type: typeOf(pack, index, entry),
      bytes: TYPES[entry.type] === undefined ? deltaResultBytes(pack, entry) : entry.bytes,
    };
  });
}

/** Returns the decompressed size of all deltas. Part of each delta must be decompressed to learn its result size. */
export function deltaBytesIn(pack: Buffer, index: PackIndex): number {
  let sum = 0;
  for (let at = 0; at < index.count; at++) {
    const entry = entryAt(pack, index.offset(at));
    if (TYPES[entry.type] === undefined) sum += entry.bytes;
  }
  return sum;
}

interface Entry {
  at: number;
  type: number;
  bytes: number;
  /** The position of the entry's compressed bytes. */
  dataAt: number;
  /** The base of a delta: its position or its id. */
  base?: number | Buffer;
}

function entryAt(pack: Buffer, at: number): Entry {
  let next = at;
  let byte = pack.readUInt8(next++);
  const type = (byte >> 4) & 7;
  let bytes = byte & 15;
  for (let shift = 4; byte & 128; shift += 7) {
    byte = pack.readUInt8(next++);
    bytes += (byte & 127) * 2 ** shift;
  }
  if (type === REF_DELTA) {
    return { at, type, bytes, dataAt: next + ID_BYTES, base: pack.subarray(next, next + ID_BYTES) };
  }
  if (type !== OFFSET_DELTA) return { at, type, bytes, dataAt: next };
  byte = pack.readUInt8(next++);
  let distance = byte & 127;
  while (byte & 128) {
    byte = pack.readUInt8(next++);
    distance = (distance + 1) * 128 + (byte & 127);
  }
  return { at, type, bytes, dataAt: next, base: at - distance };
}

/** Returns the type of an object. A delta has the type of its base. */
function typeOf(pack: Buffer, index: PackIndex, entry: Entry): string {
  let { type, base } = entry;
  while (base !== undefined) {
    const at: number = typeof base === "number" ? base : index.offset(index.find(base));
    ({ type, base } = { base: undefined, ...entryAt(pack, at) });
  }
  const named = TYPES[type];
  if (named === undefined) throw new Error(`Cannot read pack: an object has the type ${type}`);
  return named;
}

/** Returns the size of the object that a delta produces: the second of the two sizes at the start of the delta. */
function deltaResultBytes(pack: Buffer, { dataAt, bytes }: Entry): number {
  const head = inflated(pack.subarray(dataAt, dataAt + DELTA_HEAD_BYTES));
  // A stream may begin with any number of empty blocks. Then the whole delta is decompressed.
  const isEnough = head.length >= Math.min(bytes, DELTA_SIZES_BYTES);
  const delta = isEnough ? head : inflated(pack.subarray(dataAt));
  let at = 0;
  const varint = () => {
    let [value, shift] = [0, 0];
    for (;;) {
      const byte = delta.readUInt8(at++);
      value += (byte & 127) * 2 ** shift;
      shift += 7;
      if (!(byte & 128)) return value;
    }
  };
  varint();
  return varint();
}

const inflated = (packed: Buffer) => inflateSync(packed, { finishFlush: constants.Z_SYNC_FLUSH });

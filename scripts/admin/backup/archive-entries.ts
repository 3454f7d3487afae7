/**
 * Encodes stored messages as entries of nats-server's archive format (server/archive of 2.15). Backups contain
 * messages in this form. From it, the server restores the messages with their sequences and times.
 */

/** One message of a stream. */
export interface ArchivedMessage {
  subject: string;
  sequence: number;
  /** Nanoseconds since 1970. */
  timestamp: bigint;
  /** The header block as the server stores it; empty if the message has no headers. */
  headers: Uint8Array;
  payload: Uint8Array;
}

/** A decoded message, and the offset of the next entry. */
interface DecodedEntry {
  sequence: number;
  name: string;
  /** Nanoseconds since 1970, with a precision of about 256 ns. */
  timestamp: number;
  headers: Uint8Array;
  end: number;
}

export const ARCHIVE_MAGIC = Buffer.from("NATSARC1");
/** The end of an archive: an entry without a name and without a sequence. */
export const ARCHIVE_END = Buffer.alloc(5);

/** Maximum length of a 64-bit varint. */
const VARINT_BYTES_MAX = 10;
const NO_BYTES = new Uint8Array();

export function encodeMessage(message: ArchivedMessage): Buffer {
  const { subject, sequence, timestamp, headers, payload } = message;
  return encodeEntry({ name: subject, sequence, timestamp, headers, payload });
}

/** Encodes a file of an archive as an entry that has no sequence. */
export const encodeFile = (name: string, payload: Uint8Array): Buffer =>
  encodeEntry({ name, sequence: 0, timestamp: 0n, headers: NO_BYTES, payload });

function encodeEntry(entry: Omit<ArchivedMessage, "subject"> & { name: string }): Buffer {
  const { headers, payload } = entry;
  const name = Buffer.from(entry.name);
  const length = 5 * VARINT_BYTES_MAX + name.length + headers.length + payload.length;
  const buffer = Buffer.allocUnsafe(length);
  let at = writeVarint(buffer, 0, name.length);
  // The format encodes times as signed numbers: the lowest bit is the sign.
  at = writeWideVarint(buffer, at, BigInt.asUintN(64, entry.timestamp << 1n));
  at = writeVarint(buffer, at, entry.sequence);
  at = writeVarint(buffer, at, headers.length);
  at = writeVarint(buffer, at, payload.length);
  for (const part of [name, headers, payload]) {
    buffer.set(part, at);
    at += part.length;
  }
  return buffer.subarray(0, at);
}

/** Decodes the entry that begins at an offset. Throws RangeError if the entry is incomplete. */
export function decodeEntry(buffer: Buffer, offset: number): DecodedEntry {
  const nameBytes = readVarint(buffer, offset);
  const timestamp = readVarint(buffer, nameBytes.end);
  const sequence = readVarint(buffer, timestamp.end);
  const headerBytes = readVarint(buffer, sequence.end);
  const payloadBytes = readVarint(buffer, headerBytes.end);
  const nameEnd = payloadBytes.end + nameBytes.value;
  const headersEnd = nameEnd + headerBytes.value;
  const end = headersEnd + payloadBytes.value;
  if (end > buffer.length) throw new RangeError("the entry is truncated");
  return {
    sequence: sequence.value,
    name: buffer.toString("utf8", payloadBytes.end, nameEnd),
    timestamp: timestamp.value / 2,
    headers: buffer.subarray(nameEnd, headersEnd),
    end,
  };
}

/** Writes an unsigned integer below 2^53 and returns the offset after it. */
export function writeVarint(buffer: Buffer, offset: number, value: number): number {
  let left = value;
  let at = offset;
  while (left >= 0x80) {
    buffer[at++] = (left % 0x80) | 0x80;
    left = Math.floor(left / 0x80);
  }
  buffer[at++] = left;
  return at;
}

function writeWideVarint(buffer: Buffer, offset: number, value: bigint): number {
  let left = value;
  let at = offset;
  while (left >= 0x80n) {
    buffer[at++] = Number(left & 0x7fn) | 0x80;
    left >>= 7n;
  }
  buffer[at++] = Number(left);
  return at;
}

/** Reads an unsigned integer. A value of 2^53 or more loses its lowest bits. */
export function readVarint(buffer: Buffer, offset: number): { value: number; end: number } {
  let value = 0;
  let unit = 1;
  for (let at = offset; at < offset + VARINT_BYTES_MAX; at++) {
    const byte = buffer[at];
    if (byte === undefined) break;
    value += (byte & 0x7f) * unit;
    if (byte < 0x80) return { value, end: at + 1 };
    unit *= 0x80;
  }
  throw new RangeError("the number is truncated");
}

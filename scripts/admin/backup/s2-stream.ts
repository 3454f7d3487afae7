/**
 * Encodes bytes as a stream of the compression format S2, which nats-server expects in a restore. The chunks contain
 * uncompressed bytes with their CRC-32C: compression would not pay off, because the bytes cross the network only one
 * time.
 */

/**
 * The server reads nothing else from the connection until it has stored a chunk, and it syncs each message to disk.
 * With large chunks of small messages, the server would not answer a ping for seconds, and the client would close the
 * connection.
 */
export const S2_CHUNK_BYTES_MAX = 16 * 1024;

/** The first chunk of every S2 stream. */
export const S2_START = Buffer.concat([Buffer.from([0xff, 6, 0, 0]), Buffer.from("S2sTwO")]);

const UNCOMPRESSED = 0x01;
const HEADER_BYTES = 4;
const CHECKSUM_BYTES = 4;
/**
 * The constant that Snappy's framing format adds to a rotated checksum. It prevents problems when data contains its
 * own checksum.
 */
const MASK = 0xa282ead8;
/** The polynomial of CRC-32C (Castagnoli) in reversed bit order. */
const POLYNOMIAL = 0x82f63b78;
const BYTES_AT_ONCE = 8;

/** Encodes up to S2_CHUNK_BYTES_MAX bytes as one chunk. */
export function s2Chunk(bytes: Uint8Array): Buffer {
  const chunk = Buffer.allocUnsafe(HEADER_BYTES + CHECKSUM_BYTES + bytes.length);
  chunk[0] = UNCOMPRESSED;
  chunk.writeUIntLE(CHECKSUM_BYTES + bytes.length, 1, 3);
  const checksum = crc32c(bytes);
  const rotated = ((checksum >>> 15) | (checksum << 17)) >>> 0;
  chunk.writeUInt32LE((rotated + MASK) >>> 0, HEADER_BYTES);
  chunk.set(bytes, HEADER_BYTES + CHECKSUM_BYTES);
  return chunk;
}

/** `TABLES[n][b]` is the checksum of the byte `b` followed by `n` zero bytes. */
const TABLES = makeTables();

function makeTables(): Uint32Array[] {
  const tables = Array.from({ length: BYTES_AT_ONCE }, () => new Uint32Array(256));
  const [first = new Uint32Array()] = tables;
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1;
    first[byte] = crc >>> 0;
  }
  for (let n = 1; n < BYTES_AT_ONCE; n++) {
    for (let byte = 0; byte < 256; byte++) {
      const before = tables[n - 1]?.[byte] ?? 0;
      const table = tables[n];
      if (table) table[byte] = ((before >>> 8) ^ (first[before & 0xff] ?? 0)) >>> 0;
    }
  }
  return tables;
}

/**
 * Computes the CRC-32C of the bytes. Handles eight bytes per step, which takes an eighth of the time of single bytes.
 */
export function crc32c(bytes: Uint8Array): number {
  const [t0, t1, t2, t3, t4, t5, t6, t7] = TABLES as [
    ...[Uint32Array, Uint32Array, Uint32Array, Uint32Array],
    ...[Uint32Array, Uint32Array, Uint32Array, Uint32Array],
  ];
  const at = (table: Uint32Array, index: number) => table[index] as number;
  const byte = (index: number) => bytes[index] as number;
  let crc = 0xffffffff;
  let i = 0;
  for (; i + BYTES_AT_ONCE <= bytes.length; i += BYTES_AT_ONCE) {
    crc ^= byte(i) | (byte(i + 1) << 8) | (byte(i + 2) << 16) | (byte(i + 3) << 24);
    crc =
      at(t7, crc & 0xff) ^
      at(t6, (crc >>> 8) & 0xff) ^
      at(t5, (crc >>> 16) & 0xff) ^
      at(t4, crc >>> 24) ^
      at(t3, byte(i + 4)) ^
      at(t2, byte(i + 5)) ^
      at(t1, byte(i + 6)) ^
      at(t0, byte(i + 7));
  }
  for (; i < bytes.length; i++) crc = (crc >>> 8) ^ at(t0, (crc ^ byte(i)) & 0xff);
  return (crc ^ 0xffffffff) >>> 0;
}

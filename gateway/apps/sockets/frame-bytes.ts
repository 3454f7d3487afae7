/** Encodes a frame for the wire, so that it is encoded only one time for all sockets that get it. */

const FIN = 0x80;
const TEXT = 1;
const BINARY = 2;

/** A whole message in one frame, not masked, as frames of a server are (RFC 6455, section 5.2). */
export function frameBytes(data: Buffer, isText: boolean): Buffer {
  return Buffer.concat([headerOf(data.length, FIN | (isText ? TEXT : BINARY)), data]);
}

/**
 * "The length of the payload data: if 0-125, that is the payload length. If 126, the following 2 bytes …, if 127, the
 * following 8 bytes."
 */
function headerOf(length: number, first: number): Buffer {
  if (length < 126) return Buffer.of(first, length);
  if (length < 65_536) {
    const header = Buffer.of(first, 126, 0, 0);
    header.writeUInt16BE(length, 2);
    return header;
  }
  const header = Buffer.of(first, 127, 0, 0, 0, 0, 0, 0, 0, 0);
  header.writeBigUInt64BE(BigInt(length), 2);
  return header;
}

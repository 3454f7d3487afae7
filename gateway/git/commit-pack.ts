/** Writes objects as a pack, each by itself (gitformat-pack(5)). */
import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { deflate, deflateSync } from "node:zlib";
import type { MadeObject } from "./commit-changes.ts";

const TYPES = { commit: 1, tree: 2, blob: 3 } as const;
const VERSION = 2;
/** Up to this it takes less time than handing it to another thread. */
const SMALL_BYTES = 32 * 1024;

const deflated = promisify<Buffer, Buffer>(deflate);

export async function packOf(objects: readonly MadeObject[]): Promise<Buffer> {
  const head = Buffer.alloc(12);
  head.write("PACK");
  head.writeUInt32BE(VERSION, 4);
  head.writeUInt32BE(objects.length, 8);
  const parts: Buffer[] = [head];
  for (const { type, content } of objects) {
    parts.push(entryHead(TYPES[type], content.length));
    parts.push(content.length <= SMALL_BYTES ? deflateSync(content) : await deflated(content));
  }
  const pack = Buffer.concat(parts);
  return Buffer.concat([pack, createHash("sha1").update(pack).digest()]);
}

/** Four bits of the size with the type, then seven a byte. */
function entryHead(type: number, size: number): Buffer {
  const bytes: number[] = [];
  let byte = (type << 4) | (size & 15);
  for (let rest = Math.floor(size / 16); rest > 0; rest = Math.floor(rest / 128)) {
    bytes.push(byte | 128);
    byte = rest & 127;
  }
  return Buffer.from([...bytes, byte]);
}

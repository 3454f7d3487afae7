/** A gzip-compressed body whose full content would need far more memory than everything else in a test. */
import { gzipSync } from "node:zlib";

/** Uncompressed size of the body. Half of it is much more than a process's other allocations. */
export const BOMB_BYTES = 2_000_000_000;
const MEMBER_BYTES = 100_000_000;

/** Returns many gzip members one after another, which together are one valid gzip file (RFC 1952, section 2.2). */
export function gzipBomb(): Buffer {
  const member = gzipSync(Buffer.alloc(MEMBER_BYTES));
  return Buffer.concat(Array.from({ length: BOMB_BYTES / MEMBER_BYTES }, () => member));
}

/** Returns the process's peak memory so far, in bytes. */
export const peakBytes = () => process.resourceUsage().maxRSS * 1_024;

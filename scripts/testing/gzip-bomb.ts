/** A packed body that would take far more memory than all else in a test, were it unpacked as a whole. */
import { gzipSync } from "node:zlib";

/** Large enough that a process's other allocations are small beside half of it. */
export const BOMB_BYTES = 2_000_000_000;
const MEMBER_BYTES = 100_000_000;

/** Gzip files may be put one behind the other (RFC 1952, section 2.2). */
export function gzipBomb(): Buffer {
  const member = gzipSync(Buffer.alloc(MEMBER_BYTES));
  return Buffer.concat(Array.from({ length: BOMB_BYTES / MEMBER_BYTES }, () => member));
}

/** The most memory that the process has had so far. */
export const peakBytes = () => process.resourceUsage().maxRSS * 1_024;

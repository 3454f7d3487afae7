/** Compares hashes of secrets. */
import { timingSafeEqual } from "node:crypto";

/** Compares hex texts of equal length in constant time. */
export function sameHash(one: string, other: string): boolean {
  return timingSafeEqual(Buffer.from(one, "hex"), Buffer.from(other, "hex"));
}

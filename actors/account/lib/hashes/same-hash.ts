/** Compares hashes of secrets. */
import { timingSafeEqual } from "node:crypto";

/** Of hex texts of one length, in a time that does not depend on how much of them is the same. */
export function sameHash(one: string, other: string): boolean {
  return timingSafeEqual(Buffer.from(one, "hex"), Buffer.from(other, "hex"));
}

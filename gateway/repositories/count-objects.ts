/** Counts the objects of a pack. */
import type { Pack } from "../../schemas/repositories/repo.ts";

/** The parts of an index: a header, then an id, a checksum and an offset for each object (gitformat-pack(5), "Version 2"). */
const INDEX_FIXED_BYTES = 8 + 256 * 4 + 2 * 20;
const INDEX_BYTES_EACH = 20 + 4 + 4;

/** Returns the number of objects, which follows from the size of the index. */
export const objectsIn = ({ indexBytes }: Pick<Pack, "indexBytes">): number =>
  Math.max(0, Math.floor((indexBytes - INDEX_FIXED_BYTES) / INDEX_BYTES_EACH));

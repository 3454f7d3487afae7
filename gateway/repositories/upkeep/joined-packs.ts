/** Predicts which packs `git repack --geometric` joins. */
import type { Pack } from "../../../schemas/repositories/repo.ts";
import { objectsIn } from "../count-objects.ts";

/** Each pack that stays is at least this many times as large as all smaller packs together. */
export const GEOMETRIC_FACTOR = 2;

/**
 * Returns the packs that git replaces by one pack. It compares packs by their numbers of objects, the largest first,
 * and joins all packs below the first that is too small, and above it the packs that the result would equal.
 */
export function joinedPacks<P extends Pick<Pack, "indexBytes">>(packs: Iterable<P>): P[] {
  const sorted = [...packs]
    .map((pack) => ({ pack, objects: objectsIn(pack) }))
    .toSorted((one, other) => one.objects - other.objects);
  let joined = sorted.findLastIndex(
    ({ objects }, index) => objects < GEOMETRIC_FACTOR * (sorted[index - 1]?.objects ?? 0),
  );
  if (joined < 0) return [];
  joined += 1;
  let total = sorted.slice(0, joined).reduce((sum, { objects }) => sum + objects, 0);
  for (; joined < sorted.length; joined++) {
    const { objects = 0 } = sorted[joined] ?? {};
    if (objects >= GEOMETRIC_FACTOR * total) break;
    total += objects;
  }
  return sorted.slice(0, joined).map(({ pack }) => pack);
}

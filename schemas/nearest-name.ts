/** Finds the existing name that a person probably meant, for errors about unknown names. */

/**
 * Returns the known name that differs from `name` by the fewest added, removed or replaced characters, ignoring case.
 * Returns "" if `known` is empty.
 */
export function nearestName(name: string, known: readonly string[]): string {
  const lower = name.toLowerCase();
  const [first = ""] = known.toSorted(
    (one, other) => distance(lower, one.toLowerCase()) - distance(lower, other.toLowerCase()),
  );
  return first;
}

/** Returns the known name that was probably mistyped as `name`, or "" if none is similar enough. */
export function meantName(name: string, known: readonly string[]): string {
  const nearest = nearestName(name, known);
  const slips = Math.max(2, Math.floor(name.length / 3));
  return distance(name.toLowerCase(), nearest.toLowerCase()) <= slips ? nearest : "";
}

/** Returns the Levenshtein distance of two texts. */
function distance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (const [index, character] of [...from].entries()) {
    const next = [index + 1];
    for (const [column, other] of [...to].entries()) {
      const replaced = (row[column] ?? 0) + (character === other ? 0 : 1);
      next.push(Math.min(replaced, (row[column + 1] ?? 0) + 1, (next[column] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}

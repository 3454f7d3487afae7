/** Identifies one call of one client. */
export interface CallId {
  client: string;
  number: number;
  /**
   * The client never repeats its calls below this number: it has received their answers, or no longer waits for them.
   */
  settled: number;
}

/**
 * Returns the entries of a map by call number whose numbers are below `settled`. The map is usually in the order of
 * numbers, so the search stops at the first higher number. An entry behind a call with a higher number is returned
 * later, together with that call.
 */
export function belowSettled<T>(byNumber: ReadonlyMap<number, T>, settled: number): [number, T][] {
  const below: [number, T][] = [];
  for (const entry of byNumber) {
    if (entry[0] >= settled) break;
    below.push(entry);
  }
  return below;
}

/** Names one call of one client. */
export interface CallId {
  client: string;
  number: number;
  /** Calls of the client below this number are never sent again: it has their answers, or waits no more. */
  settled: number;
}

/**
 * The entries below `settled` of a map by call number. Numbers grow, so the settled entries come first. The few
 * behind a call that overtook them go with that call.
 */
export function belowSettled<T>(byNumber: ReadonlyMap<number, T>, settled: number): [number, T][] {
  const below: [number, T][] = [];
  for (const entry of byNumber) {
    if (entry[0] >= settled) break;
    below.push(entry);
  }
  return below;
}

/** Which call of which client. */
export interface CallId {
  client: string;
  number: number;
  /** Calls of the client below this number are never sent again: it has had their answers, or waits no more. */
  settled: number;
}

/** Of what is kept by a call's number: numbers grow, so the settled ones come first; the few behind one that overtook them go with it. */
export function belowSettled<T>(byNumber: ReadonlyMap<number, T>, settled: number): [number, T][] {
  const below: [number, T][] = [];
  for (const entry of byNumber) {
    if (entry[0] >= settled) break;
    below.push(entry);
  }
  return below;
}

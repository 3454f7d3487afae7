/** Which call of which client. */
export interface CallId {
  client: string;
  number: number;
  /** Calls of the client below this number are never sent again: it has had their answers, or waits no more. */
  settled: number;
}

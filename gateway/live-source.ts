/** What the gateway needs of the live subjects of actors. */

export interface LiveSource {
  /** Calls back with each message an actor says aloud from now on; some may be lost. Returns what ends it. */
  subscribe(kind: string, key: string, listener: (message: unknown) => void): () => void;
}

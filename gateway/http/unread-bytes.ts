/**
 * Limits the bytes of DevTools messages that the clients of one account have not read yet. A message of the browser is
 * large, and the gateway holds it until its client has read it.
 */

/** A message that is being written to a client. */
interface Written {
  bytes: number;
  /** Cuts off the client, which releases the memory of the message. */
  cutOff(): void;
}

export class UnreadBytes {
  readonly #max: number;
  /** The messages of each account, the oldest first. */
  readonly #ofAccounts = new Map<string, Set<Written>>();

  /** `max` is the limit for all clients of one account together. */
  constructor(max: number) {
    this.#max = max;
  }

  /** Bytes that the clients of an account have not read. */
  of(accountId: string): number {
    let bytes = 0;
    for (const written of this.#ofAccounts.get(accountId) ?? []) bytes += written.bytes;
    return bytes;
  }

  /**
   * Adds a message that is about to be written. Past the limit, cuts off the clients of this account whose messages
   * are the oldest: they have stopped reading. Returns a function that removes the message.
   */
  add(accountId: string, bytes: number, cutOff: () => void): () => void {
    const all = this.#ofAccounts.get(accountId) ?? new Set();
    this.#ofAccounts.set(accountId, all);
    const added = { bytes, cutOff };
    all.add(added);
    for (const oldest of all) {
      if (oldest === added || this.of(accountId) <= this.#max) break;
      all.delete(oldest);
      oldest.cutOff();
    }
    return () => {
      all.delete(added);
      if (all.size === 0 && this.#ofAccounts.get(accountId) === all) {
        this.#ofAccounts.delete(accountId);
      }
    };
  }
}

/** Remembers which inboxes hold the maximum of bytes, so that further bodies for them are stored as blobs. */

/**
 * Limit of the inboxes that a gateway remembers as heavy. For other inboxes, the reply to the next event tells
 * whether they are heavy.
 */
export const HEAVY_INBOXES_KEPT_MAX = 1_000;

export class HeavyInboxes {
  readonly #keys = new Set<string>();

  has(key: string): boolean {
    return this.#keys.has(key);
  }

  note(key: string, isHeavy: boolean): void {
    this.#keys.delete(key);
    if (!isHeavy) return;
    this.#keys.add(key);
    const [oldest] = this.#keys;
    if (this.#keys.size > HEAVY_INBOXES_KEPT_MAX && oldest !== undefined) this.#keys.delete(oldest);
  }
}

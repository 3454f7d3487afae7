/** Remembers which inboxes hold as much as they may, so that bodies for them come as blobs. */

/**
 * Inboxes of which a gateway knows that they have enough of bodies; one that is not known is asked about by its next
 * event.
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

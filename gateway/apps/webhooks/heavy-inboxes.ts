/** Remembers which inboxes hold as much as they may, so that bodies for them come as blobs. */
import { HEAVY_INBOXES_KEPT_MAX } from "../../../schemas/apps/webhook-limits.ts";

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

/**
 * Counts the bytes that one app's process sent and its host still holds, so that no process uses up the host's
 * memory.
 */
import { APP_HELD_BYTES_MAX } from "../../../../schemas/apps/limits.ts";

export class HeldBytes {
  #bytes = 0;
  readonly #exceeded: (reason: string) => void;

  /** `exceeded` is called past the limit. It must end the process. */
  constructor(exceeded: (reason: string) => void) {
    this.#exceeded = exceeded;
  }

  hasRoom(bytes: number): boolean {
    return this.#bytes + bytes <= APP_HELD_BYTES_MAX;
  }

  hold(bytes: number): void {
    if (!this.hasRoom(bytes)) {
      this.#exceeded(`more than ${APP_HELD_BYTES_MAX} bytes of what it said wait`);
    }
    this.#bytes += bytes;
  }

  release(bytes: number): void {
    this.#bytes -= bytes;
  }
}

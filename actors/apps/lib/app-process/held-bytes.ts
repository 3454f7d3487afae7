/** Counts what one app's process said and its host still holds, so that no process takes the memory of all. */
import { APP_HELD_BYTES_MAX } from "../../../../schemas/apps/limits.ts";

export class HeldBytes {
  #bytes = 0;
  readonly #exceeded: (reason: string) => void;

  /** `exceeded`: it is past the bound, and to be ended. */
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

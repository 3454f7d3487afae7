/** Counts the bytes on their way to one app's process, so that messages to an app cannot fill its host's memory. */
import { ActorError } from "../../../../schemas/errors.ts";

/** Limit of the bytes on their way to one process: unread turns and answers to its operations. More is refused. */
export const APP_ARRIVING_BYTES_MAX = 64 * 1024 * 1024;

export class Arriving {
  #bytes = 0;

  /** Adds bytes. Throws ActorError `busy` if the limit is reached. */
  add(bytes: number): void {
    this.checkRoom(bytes);
    this.#bytes += bytes;
  }

  /** Throws like `add` for bytes that will be added later. */
  checkRoom(bytes = 0): void {
    const isFull = this.#bytes >= APP_ARRIVING_BYTES_MAX;
    if (!isFull && this.#bytes + bytes <= APP_ARRIVING_BYTES_MAX) return;
    const text = `Cannot take more: ${APP_ARRIVING_BYTES_MAX} bytes are on their way to the app's process`;
    throw new ActorError("busy", text, { retryAfterS: 1 });
  }

  /** Adds the answer of a finished operation, which cannot be refused any more: it counts even past the limit. */
  addDone(bytes: number): void {
    this.#bytes += bytes;
  }

  /** Ends the count of bytes that have arrived or never will. */
  remove(bytes: number): void {
    this.#bytes -= bytes;
  }
}

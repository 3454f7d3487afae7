/**
 * Counts the bytes of messages that one app's process has not read yet, so that they cannot fill the host's memory.
 */
import { ActorError } from "../../../../schemas/errors.ts";

/**
 * Limit of the unread bytes for one process: its turns and the results of its operations. Further messages are
 * refused.
 */
export const APP_ARRIVING_BYTES_MAX = 64 * 1024 * 1024;

export class Arriving {
  #bytes = 0;

  /** Adds bytes. Throws ActorError `busy` if the limit is reached. */
  add(bytes: number): void {
    this.checkRoom(bytes);
    this.#bytes += bytes;
  }

  /** Throws as `add` would for bytes that will be added later. */
  checkRoom(bytes = 0): void {
    const isFull = this.#bytes >= APP_ARRIVING_BYTES_MAX;
    if (!isFull && this.#bytes + bytes <= APP_ARRIVING_BYTES_MAX) return;
    const text = `Cannot take more: ${APP_ARRIVING_BYTES_MAX} bytes are on their way to the app's process`;
    throw new ActorError("busy", text, { retryAfterS: 1 });
  }

  /** Adds the result of a finished operation, even past the limit, because it cannot be refused any more. */
  addDone(bytes: number): void {
    this.#bytes += bytes;
  }

  /** Stops counting bytes that have arrived or will never arrive. */
  remove(bytes: number): void {
    this.#bytes -= bytes;
  }
}

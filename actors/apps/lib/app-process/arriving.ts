/** Counts what is on its way to one app's process, so that no app takes its host's memory by what it is sent. */
import { ActorError } from "../../../../schemas/errors.ts";

/** Bytes on their way to one process: turns that it has not read, and answers to its operations. More is refused. */
export const APP_ARRIVING_BYTES_MAX = 64 * 1024 * 1024;

export class Arriving {
  #bytes = 0;

  /** Throws ActorError `busy` where as much is on its way as may be. */
  add(bytes: number): void {
    this.checkRoom(bytes);
    this.#bytes += bytes;
  }

  /** Throws as `add`, for what is to come later. */
  checkRoom(bytes = 0): void {
    const isFull = this.#bytes >= APP_ARRIVING_BYTES_MAX;
    if (!isFull && this.#bytes + bytes <= APP_ARRIVING_BYTES_MAX) return;
    const text = `Cannot take more: ${APP_ARRIVING_BYTES_MAX} bytes are on their way to the app's process`;
    throw new ActorError("busy", text, { retryAfterS: 1 });
  }

  /**
   * An operation that was done cannot be refused any more. Its answer counts, also past the limit, against later
   * ones.
   */
  addDone(bytes: number): void {
    this.#bytes += bytes;
  }

  /** Ends the count of bytes that have arrived or never will. */
  remove(bytes: number): void {
    this.#bytes -= bytes;
  }
}

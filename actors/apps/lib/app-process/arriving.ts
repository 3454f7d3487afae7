/** Counts what is on its way to one app's process, so that no app takes its host's memory by what it is sent. */
import { ActorError } from "../../../../schemas/errors.ts";

/**
 * What is on its way to one process: turns that it has not read, and answers of others that come for it; more is
 * refused.
 */
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

  /** What was done cannot be told as refused: its answer counts, also past the bound, against what begins after it. */
  addDone(bytes: number): void {
    this.#bytes += bytes;
  }

  /** It has arrived, or will not. */
  remove(bytes: number): void {
    this.#bytes -= bytes;
  }
}

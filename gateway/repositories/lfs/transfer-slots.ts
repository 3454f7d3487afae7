/** Limits the transfers of large files in one gateway, because each transfer holds chunks in memory. */
import type { Response } from "express";
import { ActorError } from "../../../schemas/errors.ts";

/** Transfers that one gateway runs at the same time. Each has BLOB_CHUNKS_IN_FLIGHT chunks in memory. */
const LFS_TRANSFERS_MAX = 32;

export class TransferSlots {
  readonly #max: number;
  #taken = 0;

  constructor(max = LFS_TRANSFERS_MAX) {
    this.#max = max;
  }

  /** Runs a transfer. Refuses with `busy` if all slots are taken. */
  async run(response: Response, transfer: () => Promise<void>): Promise<void> {
    if (this.#taken >= this.#max) {
      const text = "Cannot transfer: too many large files are in transfer; try again";
      throw new ActorError("busy", text, { retryAfterS: 2 });
    }
    this.#taken += 1;
    try {
      await transfer();
    } finally {
      this.#taken -= 1;
    }
    if (response.destroyed) throw new ActorError("cancelled", "The client has left");
  }
}

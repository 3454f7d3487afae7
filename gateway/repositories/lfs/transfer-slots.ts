/** Limits the transfers of large files in one gateway, because each transfer holds chunks in memory. */
import type { Response } from "express";
import { SharedSlots } from "../../../actors/runtime/lib/shared-slots.ts";
import { ActorError } from "../../../schemas/errors.ts";

/** Transfers that one gateway runs at the same time. Each has BLOB_CHUNKS_IN_FLIGHT chunks in memory. */
export const LFS_TRANSFERS_MAX = 32;
/** One account's share of the transfers. Without it, one token could keep all slots with slow downloads. */
export const LFS_ACCOUNT_SHARE = 0.5;
/**
 * A download may take as long as at this speed, and LFS_DOWNLOAD_MORE_MS more. A slow line of 1 Mbit/s needs half of
 * that time. git-lfs continues a download that was cut.
 */
export const LFS_DOWNLOAD_BYTES_PER_S = 64 * 1024;
const LFS_DOWNLOAD_MORE_MS = 10 * 60_000;

interface Transfer {
  accountId: string;
  /** Aborts when the client leaves. */
  signal: AbortSignal;
  /** Limit for the time of the transfer. */
  msMax?: number;
}

/** Returns the limit for the time in which a client downloads a file of this size. */
export function downloadMsMax(bytes: number): number {
  return LFS_DOWNLOAD_MORE_MS + Math.ceil((bytes / LFS_DOWNLOAD_BYTES_PER_S) * 1_000);
}

export class TransferSlots {
  readonly #slots: SharedSlots<string>;

  constructor(max = LFS_TRANSFERS_MAX) {
    const perOwner = Math.max(1, Math.floor(max * LFS_ACCOUNT_SHARE));
    this.#slots = new SharedSlots({ max, perOwner });
  }

  /**
   * Runs a transfer with a signal that also aborts at its time limit. Refuses with `busy` if all slots are taken, or
   * all slots that one account may have.
   */
  async run(
    response: Pick<Response, "destroyed">,
    { accountId, signal, msMax }: Transfer,
    transfer: (signal: AbortSignal) => Promise<void>,
  ): Promise<void> {
    const release = this.#slots.tryTake(accountId);
    if (!release) throw this.#refusal(accountId);
    try {
      await (msMax === undefined ? transfer(signal) : inTime(msMax, signal, transfer));
    } finally {
      release();
    }
    if (response.destroyed) throw new ActorError("cancelled", "The client has left");
  }

  #refusal(accountId: string): ActorError {
    if (this.#slots.isFull) return busy("too many large files are in transfer");
    const ofAccount = this.#slots.takenBy(accountId);
    return busy(`${ofAccount} large files of this account are in transfer, and more are too many`);
  }
}

async function inTime(
  ms: number,
  signal: AbortSignal,
  transfer: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const late = new AbortController();
  const text = `Cannot transfer: it takes longer than ${Math.ceil(ms / 60_000)} minutes`;
  const timer = setTimeout(() => late.abort(new ActorError("deadline_exceeded", text)), ms);
  try {
    await transfer(AbortSignal.any([signal, late.signal]));
  } finally {
    clearTimeout(timer);
  }
}

function busy(reason: string): ActorError {
  return new ActorError("busy", `Cannot transfer: ${reason}; try again`, { retryAfterS: 2 });
}

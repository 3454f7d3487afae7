/**
 * Limits the bytes of refused pushes that a gateway still reads. Git reads the report of a push only after it has sent
 * the whole pack. If the connection closes earlier, git shows an error of the connection beside the report.
 */
import { REPO_BYTES_SETTING_MAX } from "../../../schemas/repositories/limits.ts";

export interface DiscardLimits {
  /** Bytes of any refused body that are read. A fast connection has fewer bytes in flight. */
  bytesMax: number;
  /** Bytes of a refused push that has a place: the largest pack of any repository. */
  wholeBytesMax: number;
  /**
   * Places of one account. Its people and their CI rarely have more large pushes refused at a time. Each place costs
   * the network and the processor of the gateway up to `wholeBytesMax` bytes that nobody keeps.
   */
  wholePerAccount: number;
}

export const DISCARD_LIMITS: DiscardLimits = {
  bytesMax: 64 * 1024 ** 2,
  wholeBytesMax: REPO_BYTES_SETTING_MAX,
  wholePerAccount: 4,
};

/** Permission to read a refused push up to `bytesMax`, until it is disposed. */
export interface WholeDiscard extends Disposable {
  bytesMax: number;
}

export class PushDiscards {
  readonly #limits: DiscardLimits;
  readonly #open = new Map<string, number>();
  readonly #stopping = new AbortController();

  constructor(limits: Partial<DiscardLimits> = {}) {
    this.#limits = { ...DISCARD_LIMITS, ...limits };
  }

  get bytesMax(): number {
    return this.#limits.bytesMax;
  }

  /** Aborts when the gateway stops. Its stop waits for all requests, so no body is discarded any further. */
  get stopping(): AbortSignal {
    return this.#stopping.signal;
  }

  stop(): void {
    this.#stopping.abort();
  }

  /** Takes a place for a refused push past `bytesMax`. Returns undefined if the account has no more places. */
  enter(accountId: string): WholeDiscard | undefined {
    const open = this.#open.get(accountId) ?? 0;
    if (open >= this.#limits.wholePerAccount) return undefined;
    this.#open.set(accountId, open + 1);
    return {
      bytesMax: this.#limits.wholeBytesMax,
      [Symbol.dispose]: () => this.#leave(accountId),
    };
  }

  #leave(accountId: string): void {
    const open = (this.#open.get(accountId) ?? 0) - 1;
    if (open > 0) this.#open.set(accountId, open);
    else this.#open.delete(accountId);
  }
}

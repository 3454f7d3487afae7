/**
 * How long the lease of a host lasts. A lease that is shorter than its renewals take on a busy machine ends again and
 * again, and to take all shards anew costs more than to keep them. So the lease is longer after slow renewals.
 */
import { LEASE_TTL_MS } from "../../../schemas/limits.ts";

/**
 * The longest lease. A host that stands still keeps its shards for this long, so it is below CALL_DEADLINE_MS: calls
 * then still get their answers from the next owner.
 */
export const LEASE_TTL_MS_MAX = 10_000;
/** A lease lasts this many times as long as its slowest renewal took: the next may take longer, and fail once. */
const RENEWALS_A_LEASE = 4;
/** A slow renewal counts until this many others have followed, in half a minute. */
export const RENEWALS_KEPT = 60;

export class LeaseLength {
  #tookMs: number[] = [];

  /** In whole seconds, as Nats-TTL requires. */
  get ms(): number {
    const slowest = Math.max(0, ...this.#tookMs);
    // The usual lease survives this renewal twice.
    if (slowest <= LEASE_TTL_MS / 2) return LEASE_TTL_MS;
    return Math.min(LEASE_TTL_MS_MAX, Math.ceil((RENEWALS_A_LEASE * slowest) / 1_000) * 1_000);
  }

  /** `tookMs`: from the start of the last renewal that succeeded to the end of this one, or of a try that failed. */
  tried(tookMs: number): void {
    this.#tookMs.push(tookMs);
    this.#tookMs = this.#tookMs.slice(-RENEWALS_KEPT);
  }
}

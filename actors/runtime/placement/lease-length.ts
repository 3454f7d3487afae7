/**
 * How long the lease of a host lasts. A lease that is shorter than its renewals take on a busy machine ends again and
 * again, and to take all shards anew costs more than to keep them. So the lease is longer after slow renewals.
 */
import { LEASE_TTL_MS } from "../../../schemas/limits.ts";

/**
 * The longest lease. A suspended host keeps its shards for at most this time. It is below CALL_DEADLINE_MS, so that
 * calls still get their answers from the next owner.
 */
export const LEASE_TTL_MS_MAX = 10_000;
/**
 * After slow renewals, a lease lasts this many times as long as the slowest of them: the next may take longer, and
 * fail once.
 */
const RENEWALS_A_LEASE = 4;
/** A slow renewal counts until this many others have followed, in half a minute. */
export const RENEWALS_KEPT = 60;

export class LeaseLength {
  #tookMs: number[] = [];

  /** The lifetime in ms. A multiple of 1,000, because Nats-TTL takes whole seconds. */
  get ms(): number {
    const slowest = Math.max(0, ...this.#tookMs);
    // The default lease is at least twice as long as the slowest renewal.
    if (slowest <= LEASE_TTL_MS / 2) return LEASE_TTL_MS;
    return Math.min(LEASE_TTL_MS_MAX, Math.ceil((RENEWALS_A_LEASE * slowest) / 1_000) * 1_000);
  }

  /** `tookMs`: from the start of the last renewal that succeeded to the end of this one, or of a try that failed. */
  tried(tookMs: number): void {
    this.#tookMs.push(tookMs);
    this.#tookMs = this.#tookMs.slice(-RENEWALS_KEPT);
  }
}

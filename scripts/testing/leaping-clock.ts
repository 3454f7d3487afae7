/**
 * A clock whose monotonic time leaps ahead now and then, so that a host counts one of its renewals as slow. Its next
 * leases then have the maximum length.
 */
import type { Clock } from "../../actors/runtime/lib/clock.ts";
import { LEASE_TTL_MS_MAX } from "../../actors/runtime/placement/lease-length.ts";

/** A renewal that takes this time makes the lease as long as it can be. */
const LEAP_MS = LEASE_TTL_MS_MAX / 4;
/** Shorter than the time for which a slow renewal counts. */
const EVERY_MS = 20_000;

export class LeapingClock implements Clock {
  readonly id: string | undefined;
  readonly #clock: Clock;
  readonly #startedAt: number;

  constructor(clock: Clock) {
    this.id = clock.id;
    this.#clock = clock;
    this.#startedAt = clock.monotonic();
  }

  now(): number {
    return this.#clock.now();
  }

  /** The first leap comes at once, and the others every EVERY_MS. */
  monotonic(): number {
    const now = this.#clock.monotonic();
    return now + LEAP_MS * Math.ceil((now - this.#startedAt) / EVERY_MS);
  }

  wait(ms: number, signal?: AbortSignal): Promise<void> {
    return this.#clock.wait(ms, signal);
  }
}

/**
 * A clock whose monotonic time leaps ahead now and then, so that a host counts one of its renewals as slow. Its next
 * leases then have the maximum length.
 */
import type { Clock } from "../../actors/runtime/lib/clock.ts";
import { LEASE_TTL_MS_MAX } from "../../actors/runtime/placement/lease-length.ts";

/** A renewal that takes this time makes the lease as long as it can be. */
const LEAP_MS = LEASE_TTL_MS_MAX / 4;
/** The first leap comes after the first renewals. */
const FIRST_MS = 1_000;
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

  monotonic(): number {
    const now = this.#clock.monotonic();
    const leaps = Math.ceil((now - this.#startedAt - FIRST_MS) / EVERY_MS);
    return now + LEAP_MS * Math.max(0, leaps);
  }

  wait(ms: number, signal?: AbortSignal): Promise<void> {
    return this.#clock.wait(ms, signal);
  }
}

/**
 * The pace at which a host's agents get events. A busy host reports results a little later, so that each inbox
 * gathers more events until the report arrives. Storing a record costs about the same for one event as for many.
 */
import { DELIVERIES_TOGETHER_MAX } from "../../../schemas/apps/limits.ts";
import type { Clock } from "../../runtime/lib/clock.ts";

/** Above this share of busy time, a host takes more events in one round, and takes rounds less often. */
export const DELIVERIES_GATHER_LOAD = 0.8;
/** Interval between two measurements of the load. */
export const DELIVERY_LOAD_MS = 250;
/**
 * Time by which a busy host delays its report to an inbox. The inbox gathers events during this time, which is about
 * how long events would otherwise wait in the host's queue.
 */
export const DELIVERIES_GATHER_MS = 1_000;

export class DeliveryPace {
  readonly #clock: Clock;
  /** Returns the share of the time since the last call in which this thread was busy, 0 to 1. */
  readonly #measure: () => number;
  #measuredAt: number;
  #load = 0;

  constructor(clock: Clock, measure = utilization()) {
    this.#clock = clock;
    this.#measure = measure;
    this.#measuredAt = clock.monotonic();
  }

  /**
   * Resolves when the host may report to the inbox: without delay if the host is not busy or a full round of events
   * waits.
   */
  async gather(waiting: number, signal: AbortSignal): Promise<void> {
    if (waiting >= DELIVERIES_TOGETHER_MAX || this.#loadNow() < DELIVERIES_GATHER_LOAD) return;
    await this.#clock.wait(DELIVERIES_GATHER_MS, signal);
  }

  #loadNow(): number {
    const now = this.#clock.monotonic();
    if (now - this.#measuredAt >= DELIVERY_LOAD_MS) {
      this.#load = this.#measure();
      this.#measuredAt = now;
    }
    return this.#load;
  }
}

function utilization(): () => number {
  let last = performance.eventLoopUtilization();
  return () => {
    const now = performance.eventLoopUtilization();
    const { utilization: share } = performance.eventLoopUtilization(now, last);
    last = now;
    return share;
  };
}

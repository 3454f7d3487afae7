/**
 * The pace at which agents of a host get events. A busy host settles a little later, and each inbox gathers events
 * meanwhile. A record costs about the same, however many events it holds.
 */
import { DELIVERIES_TOGETHER_MAX } from "../../../schemas/apps/limits.ts";
import type { Clock } from "../../runtime/lib/clock.ts";

/** Share of its time that a host is at work, from which on agents are given more events at once, and less often. */
export const DELIVERIES_GATHER_LOAD = 0.8;
/** Between two looks at that. */
export const DELIVERY_LOAD_MS = 250;
/**
 * How long an inbox then waits to hear that they are taken, and gathers meanwhile what comes: as long as a queue of
 * them would.
 */
export const DELIVERIES_GATHER_MS = 1_000;

export class DeliveryPace {
  readonly #clock: Clock;
  /** Share of the time since it was last asked in which this thread was at work, 0 to 1. */
  readonly #measure: () => number;
  #measuredAt: number;
  #load = 0;

  constructor(clock: Clock, measure = utilization()) {
    this.#clock = clock;
    this.#measure = measure;
    this.#measuredAt = clock.monotonic();
  }

  /** Resolves when the inbox should be notified: at once while the host has time, or when a full round waits. */
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

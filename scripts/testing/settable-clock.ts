/** A real clock whose time of day a test can set. Its monotonic clock and its waits follow the real time. */
import { type Clock, systemClock } from "../../actors/runtime/lib/clock.ts";

export class SettableClock implements Clock {
  readonly id = "settable";
  /** How far the time of day is ahead of the machine's. */
  aheadMs: number;

  constructor(aheadMs: number) {
    this.aheadMs = aheadMs;
  }

  now(): number {
    return systemClock.now() + this.aheadMs;
  }

  monotonic(): number {
    return systemClock.monotonic();
  }

  wait(ms: number, signal?: AbortSignal): Promise<void> {
    return systemClock.wait(ms, signal);
  }
}

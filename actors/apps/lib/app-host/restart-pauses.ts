/** Counts the growing pause before an app may start again after its process crashed or did not start. */
import type { Clock } from "../../../runtime/lib/clock.ts";

/**
 * The pause after the second crash in a row. After the first crash an app starts again without a pause. Later pauses
 * double up to APP_RESTART_MS_MAX.
 */
export const APP_RESTART_MS = 100;
export const APP_RESTART_MS_MAX = 5_000;
/** An app counts as stable if no start or process failed for this time after the last pause. */
export const APP_STABLE_MS = 30_000;

interface Restart {
  revision: number;
  /** How often it crashed or did not start, without a stable time between. */
  failures: number;
  notBefore: number;
}

export class RestartPauses {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #restarts = new Map<string, Restart>();

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
  }

  /** Returns the milliseconds until this revision may start. Zero or less means that it may start now. */
  leftMs(key: string, revision: number): number {
    const restart = this.#restarts.get(key);
    return restart?.revision === revision ? restart.notBefore - this.#clock.monotonic() : 0;
  }

  putOff(key: string, revision: number): void {
    const now = this.#clock.monotonic();
    const before = this.#restarts.get(key);
    const isNew = before?.revision !== revision || now - before.notBefore > APP_STABLE_MS;
    const failures = isNew ? 1 : before.failures + 1;
    const pauseMs =
      failures === 1 ? 0 : Math.min(APP_RESTART_MS * 2 ** (failures - 2), APP_RESTART_MS_MAX);
    this.#restarts.set(key, { revision, failures, notBefore: now + pauseMs });
  }

  /** Removes the records of apps that have been stable since their last restart. */
  sweep(): void {
    const now = this.#clock.monotonic();
    for (const [key, { notBefore }] of this.#restarts) {
      if (now - notBefore > APP_STABLE_MS) this.#restarts.delete(key);
    }
  }
}

/** Counts the growing pause before an app may start again after its process crashed or did not start. */
import type { Clock } from "../../../runtime/lib/clock.ts";

/**
 * Half of the first pause. An app starts again without a pause after its first crash, and after a pause of twice this
 * time after the second. Pauses double up to APP_RESTART_MS_MAX.
 */
export const APP_RESTART_MS = 50;
const APP_RESTART_MS_MAX = 5_000;
/** An app counts as stable if no start or process failed for this time after the last pause. */
const APP_STABLE_MS = 30_000;

interface Restart {
  revision: number;
  pauseMs: number;
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
    const pauseMs = isNew ? APP_RESTART_MS : Math.min(2 * before.pauseMs, APP_RESTART_MS_MAX);
    this.#restarts.set(key, { revision, pauseMs, notBefore: now + (isNew ? 0 : pauseMs) });
  }

  /** Removes the records of apps that have been stable since their last restart. */
  sweep(): void {
    const now = this.#clock.monotonic();
    for (const [key, { notBefore }] of this.#restarts) {
      if (now - notBefore > APP_STABLE_MS) this.#restarts.delete(key);
    }
  }
}

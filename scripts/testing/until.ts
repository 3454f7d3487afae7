/** Polls in a test until a condition is true, and fails after a timeout. */
import { setTimeout as pause } from "node:timers/promises";

const LOOK_MS = 3;
/**
 * A `look` that takes time, such as a call or a process, gets a longer pause, so that it leaves the processors to the
 * work that the test waits for. The pause is bounded by a share of the whole wait, so that measured times are at
 * most 5 % too long.
 */
const PAUSES_PER_LOOK = 4;
const PAUSE_SHARE_MAX = 0.05;
const PAUSE_MS_MAX = 250;

/**
 * Calls `look` repeatedly. Resolves to the first result that is neither `undefined` nor `false`. After `withinMs`
 * rejects with an error that contains `what`.
 */
export async function until<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
  withinMs = 30_000,
): Promise<T> {
  const startedAt = performance.now();
  for (;;) {
    const lookedAt = performance.now();
    const seen = await look();
    if (seen !== undefined && seen !== false) return seen;
    const now = performance.now();
    if (now - startedAt > withinMs) throw new Error(`Waited ${withinMs} ms in vain: ${what}`);
    const longest = Math.min(PAUSE_MS_MAX, PAUSE_SHARE_MAX * (now - startedAt));
    await pause(Math.max(LOOK_MS, Math.min(PAUSES_PER_LOOK * (now - lookedAt), longest)));
  }
}

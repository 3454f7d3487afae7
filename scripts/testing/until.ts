/** Polls in a test until a condition is true, and fails after a timeout. */
import { setTimeout as pause } from "node:timers/promises";

const LOOK_MS = 3;

/**
 * Calls `look` repeatedly. Resolves to the first result that is neither `undefined` nor `false`. After `withinMs`
 * rejects with an error that contains `what`.
 */
export async function until<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
  withinMs = 30_000,
): Promise<T> {
  const giveUpAt = performance.now() + withinMs;
  for (;;) {
    const seen = await look();
    if (seen !== undefined && seen !== false) return seen;
    if (performance.now() > giveUpAt) throw new Error(`Waited ${withinMs} ms in vain: ${what}`);
    await pause(LOOK_MS);
  }
}

/** Waits in a test for something that can only be looked at, and fails when it does not come. */
import { setTimeout as pause } from "node:timers/promises";

const LOOK_MS = 3;

/** Resolves with the first answer that is neither `undefined` nor `false`; rejects with `what` after `withinMs`. */
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

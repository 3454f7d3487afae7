/** Repeats a request after a temporary failure of the other side. */
import { setTimeout as pause } from "node:timers/promises";

/**
 * Resolves to the first outcome that need not be repeated, or to the outcome of the last attempt. Pauses before each
 * repetition.
 */
export async function retried<T>(
  run: () => Promise<T>,
  isToRepeat: (outcome: T) => boolean,
  { pausesMs, signal }: { pausesMs: readonly number[]; signal: AbortSignal },
): Promise<T> {
  for (const pauseMs of pausesMs) {
    const outcome = await run();
    if (!isToRepeat(outcome)) return outcome;
    await pause(pauseMs, undefined, { signal }).catch(() => signal.throwIfAborted());
  }
  return await run();
}

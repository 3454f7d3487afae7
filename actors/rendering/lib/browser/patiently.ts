/** Waits a limited time for conditions that are optional. */
import type { Clock } from "../../../runtime/lib/clock.ts";
import { within } from "../../../runtime/lib/time-limit.ts";

/** Waits for a bounded time. A condition that is not met by then is no failure. */
export async function patiently(
  { ms, signal, clock }: { ms: number; signal: AbortSignal; clock: Clock },
  wait: (signal: AbortSignal) => Promise<unknown>,
): Promise<void> {
  const late = new Error("it did not come in time");
  await within({ ms, error: () => late, signal, clock }, wait).catch((error) => {
    if (error !== late) throw error;
  });
}

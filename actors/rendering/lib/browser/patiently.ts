/** Waits a limited time for conditions that are optional. */
import type { Clock } from "../../../runtime/lib/clock.ts";
import { within } from "../../../runtime/lib/time-limit.ts";

/** Waits for a bounded time. A condition that is not met by then is no failure. */
export async function patiently(
  { ms, signal, clock }: { ms: number; signal: AbortSignal; clock: Clock },
  wait: (signal: AbortSignal) => Promise<unknown>,
): Promise<void> {
  let late: Error | undefined;
  const error = () => {
    late = new Error("it did not come in time");
    return late;
  };
  await within({ ms, error, signal, clock }, wait).catch((caught) => {
    if (late === undefined || caught !== late) throw caught;
  });
}

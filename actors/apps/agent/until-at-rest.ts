/** Waits until an agent that leaves memory has finished its work. */
import type { Clock } from "../../runtime/lib/clock.ts";

/**
 * Time for which background work may continue after another process has replaced this one. The limit for turns is
 * AGENT_TURN_MS_MAX.
 */
export const APP_DRAIN_MS = 10_000;

const POLL_MS = 50;

/**
 * Resolves when the work has ended, after APP_DRAIN_MS, or when the signal aborts. `changed` returns a promise that
 * resolves when some work has ended.
 */
export async function untilAtRest(
  isAtWork: () => boolean,
  { clock, signal, changed }: { clock: Clock; signal: AbortSignal; changed: () => Promise<void> },
): Promise<void> {
  const giveUpAt = clock.monotonic() + APP_DRAIN_MS;
  while (isAtWork() && !signal.aborted && clock.monotonic() < giveUpAt) {
    const woken = new AbortController();
    const wake = () => woken.abort();
    void changed().then(wake);
    signal.addEventListener("abort", wake, { once: true });
    await clock.wait(POLL_MS, woken.signal);
    signal.removeEventListener("abort", wake);
  }
}

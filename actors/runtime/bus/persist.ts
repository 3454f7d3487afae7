/**
 * Repeats a request to the bus for a limited time until the bus answers it. Use it only for requests that may be
 * executed twice.
 */
import { JetStreamApiError } from "@nats-io/jetstream";
import { ActorError } from "../../../schemas/errors.ts";
import { CALL_DEADLINE_MS, CALL_RETRY_MS_MAX } from "../../../schemas/limits.ts";
import type { Clock } from "../lib/clock.ts";
import { isSilence } from "./ask.ts";
import { OutcomeUnknown, WriteRefused } from "./atomic-batch.ts";

/**
 * Rejects after CALL_DEADLINE_MS with ActorError `unavailable`. Rejects immediately with an error that is not
 * temporary, or with the signal's reason.
 */
export async function persist<T>(
  clock: Clock,
  what: string,
  ask: () => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const givesUpAt = clock.monotonic() + CALL_DEADLINE_MS;
  for (;;) {
    signal?.throwIfAborted();
    try {
      return await ask();
    } catch (cause) {
      if (!isPassing(cause)) throw cause;
      if (clock.monotonic() > givesUpAt) {
        const text = `Cannot ${what}: the bus does not answer`;
        throw Object.assign(new ActorError("unavailable", text, { retryAfterS: 1 }), { cause });
      }
      await clock.wait(CALL_RETRY_MS_MAX, signal);
    }
  }
}

const isPassing = (error: unknown) =>
  error instanceof OutcomeUnknown ||
  (error instanceof WriteRefused && error.inFlight) ||
  isSilence(error) ||
  // JetStream is temporarily unavailable.
  (error instanceof JetStreamApiError && error.status === 503);

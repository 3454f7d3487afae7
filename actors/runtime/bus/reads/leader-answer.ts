/** Repeats a read of a stream until its leader answers. */
import { JetStreamApiError, type StoredMsg } from "@nats-io/jetstream";
import { TimeoutError } from "@nats-io/transport-node";
import { BUS_REQUEST_MS } from "../../../../schemas/limits.ts";

/** JetStream's error code for a read that finds nothing. */
export const NO_MESSAGE_FOUND = 10037;

/** Repeats the read for up to about BUS_REQUEST_MS. Resolves with undefined if no such message exists. */
export async function untilLeaderAnswers(
  read: () => Promise<StoredMsg | null>,
): Promise<StoredMsg | undefined> {
  const giveUpAt = performance.now() + BUS_REQUEST_MS;
  for (;;) {
    try {
      return (await read()) ?? undefined;
    } catch (error) {
      if (error instanceof JetStreamApiError && error.code === NO_MESSAGE_FOUND) return undefined;
      // Repeat the read: a stream without a leader does not answer, and its next leader has not received the request.
      if (!(error instanceof TimeoutError) || performance.now() > giveUpAt) throw error;
    }
  }
}

/** Reminders as the bus keeps them: scheduled messages in the stream of their actor's state (ADR-51). */
import type { Write } from "./atomic-batch.ts";
import type { Shard } from "./shard.ts";

/** What is removed leaves a marker for so long, so that a replica that lags sees it go; then nothing is left. */
export const REMOVED = { "KV-Operation": "DEL", "Nats-TTL": "10s" } as const;

/** Sets, replaces or (`at` null) takes back the reminder of one message. */
export function reminderWrite(
  shard: Shard,
  address: string,
  message: string,
  at: number | null,
): Omit<Write, "expect"> {
  const { subjects, number } = shard;
  const subject = subjects.remind(number, address, message);
  if (at === null) return { subject, payload: "", headers: REMOVED };
  return {
    subject,
    payload: JSON.stringify({ at }),
    headers: {
      "Nats-Schedule": `@at ${new Date(at).toISOString()}`,
      "Nats-Schedule-Target": subjects.fired(number, address, message),
    },
  };
}

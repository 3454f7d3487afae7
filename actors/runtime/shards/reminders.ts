/** Reminders as the bus keeps them: scheduled messages in the stream of their actor's state (ADR-51). */
import type { StateSubjects } from "../../../schemas/subjects.ts";

/** A removal leaves a marker for a while, so that a replica that lags sees it. */
export const REMOVED = { "KV-Operation": "DEL", "Nats-TTL": "10s" } as const;

/** The value of a reminder: when it is due, epoch ms. */
export const reminderText = (at: number) => JSON.stringify({ at });

/** Headers that make the value of a reminder a scheduled message; none where the subject is no reminder's. */
export function scheduleOf(
  subjects: StateSubjects,
  subject: string,
  text: string,
): Readonly<Record<string, string>> {
  const target = subjects.firedFor(subject);
  if (target === undefined) return {};
  // Written by `reminderText`.
  const { at } = JSON.parse(text) as { at: number };
  return {
    "Nats-Schedule": `@at ${new Date(at).toISOString()}`,
    "Nats-Schedule-Target": target,
  };
}

/** Reminders as the bus keeps them: scheduled messages in the stream of their actor's state (ADR-51). */
import { z } from "zod";
import type { StateSubjects } from "../../../schemas/subjects.ts";

/** The headers of a removal. It leaves a marker for ten seconds, so that a replica that lags behind receives it. */
export const REMOVED = { "KV-Operation": "DEL", "Nats-TTL": "10s" } as const;

/** The value of a reminder: when it is due, epoch ms. */
export const reminderText = (at: number) => JSON.stringify({ at });
const Reminder = z.object({ at: z.number() });
/** Reads the value of a stored or a fired reminder: returns when it is due. */
export const reminderAt = (text: string): number => Reminder.parse(JSON.parse(text)).at;

/** Returns the headers that make a reminder's value a scheduled message; none if the subject is not a reminder's. */
export function scheduleOf(
  subjects: StateSubjects,
  subject: string,
  text: string,
): Readonly<Record<string, string>> {
  const target = subjects.firedFor(subject);
  if (target === undefined) return {};
  return {
    "Nats-Schedule": `@at ${new Date(reminderAt(text)).toISOString()}`,
    "Nats-Schedule-Target": target,
  };
}

/** Publishes the mail of clients and workers, which have no outbox. */

import { ActorError } from "../../../schemas/errors.ts";
import { MESSAGE_BYTES_MAX } from "../../../schemas/limits.ts";
import { mailTo } from "../../../schemas/split-streams.ts";
import { WriteRefused, writeAtomically } from "../bus/atomic-batch.ts";
import type { Bus } from "../bus/bus.ts";
import { persist } from "../bus/persist.ts";
import type { Clock } from "../lib/clock.ts";
import { currentTrace } from "../lib/trace.ts";

/**
 * Stores mail under its id, so that the stream drops a repetition within its duplicate window. Rejects with
 * ActorError.
 */
export async function publishMail(
  bus: Bus,
  clock: Clock,
  mail: { id: string; from: string; address: string; message: string; input: unknown },
): Promise<void> {
  const { id, from, address, message, input } = mail;
  const payload = JSON.stringify({ from, message, input });
  if (Buffer.byteLength(payload) > MESSAGE_BYTES_MAX) {
    const text = `Cannot send to ${address}: the message is larger than ${MESSAGE_BYTES_MAX} bytes`;
    throw new ActorError("body_too_large", text);
  }
  const subject = mailTo(bus.layout, address);
  const write = { subject, payload, headers: { ...currentTrace(), "Nats-Msg-Id": id } };
  try {
    await persist(clock, `send to ${address}`, () => writeAtomically(bus, [write]));
  } catch (cause) {
    if (!(cause instanceof WriteRefused)) throw cause;
    const text = `Cannot send to ${address}: the bus did not take it`;
    throw Object.assign(new ActorError("unavailable", text, { retryAfterS: 1 }), { cause });
  }
}

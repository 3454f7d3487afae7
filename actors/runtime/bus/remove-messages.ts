/** Removes the messages under a subject of a stream, or under many, for good. */
import type { Bus } from "./bus.ts";

/** May be repeated. Rejects where the bus is away; some messages may be gone then. */
export async function removeMessages(bus: Bus, stream: string, subjects: string): Promise<void> {
  await bus.whileConnected(() => bus.jetstream.streams.purge(stream, { filter: subjects }));
}

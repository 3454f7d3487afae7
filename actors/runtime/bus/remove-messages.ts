/** Removes what is stored under a subject of a stream, or under many, for good. */
import type { Bus } from "./bus.ts";

/** Safe to run again. Rejects where the bus is away: then some may be gone. */
export async function removeMessages(bus: Bus, stream: string, subjects: string): Promise<void> {
  await bus.whileConnected(() => bus.jetstream.streams.purge(stream, { filter: subjects }));
}

/** Lets a reader end when the server of its consumer is gone. */
import type { ConsumerMessages } from "@nats-io/jetstream";

/**
 * Stops the messages when their consumer misses heartbeats. A reader's consumer lives on one server and dies with it.
 * The library would wait for that consumer; the reader makes another.
 */
export async function endWhenSilent(messages: ConsumerMessages): Promise<void> {
  for await (const { type } of messages.status()) {
    if (type === "heartbeats_missed") messages.stop();
  }
}

/** Lets a reader end when the server that served it is gone. */
import type { ConsumerMessages } from "@nats-io/jetstream";

/**
 * Stops the messages when their consumer's heartbeats stay out. A consumer of a reader lives on one server and dies with
 * it; the library would go on asking for that one, the reader makes another.
 */
export async function endWhenSilent(messages: ConsumerMessages): Promise<void> {
  for await (const { type } of messages.status()) {
    if (type === "heartbeats_missed") messages.stop();
  }
}

/** Lets a reader end when its consumer does not answer. */
import type { ConsumerMessages } from "@nats-io/jetstream";

/**
 * Stops the messages when nobody receives their pull requests, or when their consumer misses heartbeats. A reader's
 * consumer lives on one server and dies with it. The library would wait for that consumer; the reader makes another.
 * Resolves when the messages end, to true where nobody received a request.
 */
export async function endWhenSilent(messages: ConsumerMessages): Promise<boolean> {
  let isUnheard = false;
  for await (const { type } of messages.status()) {
    isUnheard ||= type === "no_responders";
    if (isUnheard || type === "heartbeats_missed") messages.stop();
  }
  return isUnheard;
}

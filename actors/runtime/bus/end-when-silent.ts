/** Ends the messages of a reader when its consumer does not answer. */
import type { ConsumerMessages } from "@nats-io/jetstream";

/**
 * Stops the messages when their pull requests have no responders, or when their consumer misses heartbeats. A
 * reader's consumer lives on one server and is lost with this server. The library would wait for the lost consumer;
 * the reader creates another one instead. Resolves when the messages end, with true if a pull request had no
 * responders.
 */
export async function endWhenSilent(messages: ConsumerMessages): Promise<boolean> {
  let isUnheard = false;
  for await (const { type } of messages.status()) {
    isUnheard ||= type === "no_responders";
    if (isUnheard || type === "heartbeats_missed") messages.stop();
  }
  return isUnheard;
}

/** The message of a task as a worker reads and settles it. */
import type { JsMsg } from "@nats-io/jetstream";
import { type Msg, type NatsConnection, nanos } from "@nats-io/transport-node";

/** The part of the library's message that workers use. */
export type PulledMessage = Pick<
  JsMsg,
  "subject" | "seq" | "string" | "ack" | "nak" | "term" | "working"
> & { info: Pick<JsMsg["info"], "deliveryCount"> };

/**
 * Converts the answer to a short pull into a message that a worker can settle. The library's own pulls wait at least
 * one second, and would occupy a worker's place for that time if the queue is empty.
 */
export function pulledMessage(connection: NatsConnection, message: Msg): PulledMessage {
  const { reply = "" } = message;
  const tokens = reply.split(".");
  // In a reply subject with more than nine tokens, a domain and an account's hash come before the stream's name
  // (ADR-15).
  const delivered = tokens.length === 9 ? 4 : 6;
  const settle = (text: string) => connection.publish(reply, text);
  return {
    subject: message.subject,
    seq: Number(tokens[delivered + 1]),
    info: { deliveryCount: Number(tokens[delivered]) },
    string: () => message.string(),
    ack: () => settle("+ACK"),
    nak: (ms) => settle(ms === undefined ? "-NAK" : `-NAK ${JSON.stringify({ delay: nanos(ms) })}`),
    term: (reason = "") => settle(reason === "" ? "+TERM" : `+TERM ${reason}`),
    working: () => settle("+WPI"),
  };
}

/** Answers the requests on one subject while the connection lasts. A requester uses `ask`. */
import type { Msg } from "@nats-io/transport-node";
import type { Logger } from "pino";
import type { Bus } from "./bus.ts";

interface AnswerOptions {
  /** The queue group: one process of the group answers each request. */
  queue?: string;
}

/**
 * `answer` maps the payload of a request to the payload of its reply. If `answer` throws or rejects, the error is
 * logged and no reply is sent. The returned function ends the subscription.
 */
export type AnswerOn = (
  subject: string,
  answer: (payload: string) => string | Promise<string>,
  options?: AnswerOptions,
) => () => void;

/**
 * Sends a reply only to an inbox. A requester could name a subject of a stream as its reply subject, and the stream
 * would store the reply.
 */
function respond(msg: Msg, answer: string): void {
  if (msg.reply?.startsWith("_INBOX")) msg.respond(answer);
}

export function answerOn(
  { bus, logger }: { bus: Bus; logger: Logger },
  ...[subject, answer, { queue } = {}]: Parameters<AnswerOn>
) {
  const failed = (error: unknown) =>
    logger.error({ err: error, subject }, "request handler failed");
  const subscription = bus.connection.subscribe(subject, {
    ...(queue !== undefined && { queue }),
    callback: (error, msg) => {
      if (error) return;
      // An error thrown here would end the reader of the whole connection.
      try {
        const given = answer(msg.string());
        // Most replies are ready without a wait. They are sent immediately, in the order of their requests.
        if (typeof given === "string") respond(msg, given);
        else given.then((text) => respond(msg, text)).catch(failed);
      } catch (thrown) {
        failed(thrown);
      }
    },
  });
  return () => subscription.unsubscribe();
}

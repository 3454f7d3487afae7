/** Answers the requests on one subject while the connection lasts: see `ask`. */
import type { Msg } from "@nats-io/transport-node";
import type { Logger } from "pino";
import type { Bus } from "./bus.ts";

interface AnswerOptions {
  /** One of the processes with the same queue answers each request. */
  queue?: string;
}

/**
 * `answer` maps the payload of a request to that of its reply. If it throws or rejects, the error is logged and no
 * reply is sent. Returns a function that ends the answering.
 */
export type AnswerOn = (
  subject: string,
  answer: (payload: string) => string | Promise<string>,
  options?: AnswerOptions,
) => () => void;

/** Answers go to inboxes alone: an asker could name a subject of a stream, which would store the answer. */
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
        // Most replies are ready at once, and keep their order.
        if (typeof given === "string") respond(msg, given);
        else given.then((text) => respond(msg, text)).catch(failed);
      } catch (thrown) {
        failed(thrown);
      }
    },
  });
  return () => subscription.unsubscribe();
}

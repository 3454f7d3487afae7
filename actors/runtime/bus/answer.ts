/** Answers what is asked on one subject, for as long as the connection is there: see `ask`. */
import type { Logger } from "pino";
import type { Bus } from "./bus.ts";

interface AnswerOptions {
  /** Of those that name the same, one answers each time. */
  queue?: string;
}

/** `answer` has the payload and gives the reply's. Where it throws or rejects, that is logged and nobody hears an answer. Returns what ends it. */
export type AnswerOn = (
  subject: string,
  answer: (payload: string) => string | Promise<string>,
  options?: AnswerOptions,
) => () => void;

export function answerOn(
  { bus, logger }: { bus: Bus; logger: Logger },
  ...[subject, answer, { queue } = {}]: Parameters<AnswerOn>
) {
  const failed = (error: unknown) => logger.error({ err: error, subject }, "question not answered");
  const subscription = bus.connection.subscribe(subject, {
    ...(queue !== undefined && { queue }),
    callback: (error, msg) => {
      if (error) return;
      // What is thrown here would end the reading of all that the connection brings.
      try {
        const given = answer(msg.string());
        // Most are ready at once, and stay in their order.
        if (typeof given === "string") msg.respond(given);
        else given.then((text) => msg.respond(text)).catch(failed);
      } catch (thrown) {
        failed(thrown);
      }
    },
  });
  return () => subscription.unsubscribe();
}

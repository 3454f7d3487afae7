/** Mail, reminders and sends nobody could handle: kept with their error until an operator retries or drops them. */
import type { Logger } from "pino";
import { z } from "zod";
import { READER_RETRY_MS } from "../../schemas/limits.ts";
import { deadSubject, STREAMS } from "../../schemas/subjects.ts";
import type { Delivery } from "./activation.ts";
import { OutcomeUnknown, writeAtomically } from "./atomic-batch.ts";
import type { Bus } from "./bus.ts";
import type { Clock } from "./clock.ts";

export const DeadLetter = z.object({
  message: z.string(),
  input: z.unknown(),
  error: z.string(),
  tries: z.number(),
  /** Epoch ms. */
  buriedAt: z.number(),
});
export type DeadLetter = z.infer<typeof DeadLetter>;

export class DeadLetters {
  readonly #bus: Bus;
  readonly #clock: Clock;
  readonly #logger: Logger;

  constructor(bus: Bus, clock: Clock, logger: Logger) {
    this.#bus = bus;
    this.#clock = clock;
    this.#logger = logger;
  }

  /** Resolves when the letter is durable; tries for as long as that takes, since nothing may be lost here. */
  async bury(address: string, delivery: Delivery, error: Error): Promise<void> {
    const { message, input, sequence, dueAt, tries } = delivery;
    this.#logger.error({ err: error, address, message, tries }, "message became a dead letter");
    const letter: DeadLetter = {
      message,
      input,
      error: error.message,
      tries,
      buriedAt: this.#clock.now(),
    };
    const id =
      sequence === undefined ? `${address}-${message}-${dueAt}` : `${STREAMS.mail}-${sequence}`;
    for (;;) {
      try {
        await writeAtomically(this.#bus, [
          {
            subject: deadSubject(address),
            payload: JSON.stringify(letter),
            headers: { "Nats-Msg-Id": id },
          },
        ]);
        return;
      } catch (cause) {
        if (!(cause instanceof OutcomeUnknown)) {
          this.#logger.error(
            { err: cause, address, message },
            "dead letter refused, will try again",
          );
        }
        await this.#clock.wait(READER_RETRY_MS);
      }
    }
  }
}

/** Opens the keys of jobs' requests: a process of the role `actors` does it, since it has the key of secrets. */
import { ActorError } from "../../../../schemas/errors.ts";
import {
  REQUEST_KEY_SUBJECT,
  RequestKeyAnswer,
  type RequestKeyQuestion,
} from "../../../../schemas/rendering/request-key.ts";
import { ask } from "../../../runtime/bus/ask.ts";
import type { Bus } from "../../../runtime/bus/bus.ts";

const ANSWER_MS_MAX = 5_000;

export class RequestKeys {
  readonly #bus: Bus;

  constructor(bus: Bus) {
    this.#bus = bus;
  }

  /** Resolves with the key. Rejects with a refusal if no key opens it, and with another error if the task may retry. */
  async open(question: RequestKeyQuestion): Promise<string> {
    const payload = JSON.stringify(question);
    const asked = await ask(this.#bus, REQUEST_KEY_SUBJECT, payload, { timeoutMs: ANSWER_MS_MAX });
    if (typeof asked === "string")
      throw new Error("Cannot open request of a job: no actors answer");
    const answer = RequestKeyAnswer.parse(JSON.parse(asked.answer.string()));
    if ("key" in answer) return answer.key;
    throw new ActorError("internal_error", "Cannot run job: its request cannot be decrypted");
  }
}

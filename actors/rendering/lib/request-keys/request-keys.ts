/**
 * Opens the keys of stored requests of rendering jobs and crawls. A process of the role `actors` opens them, since it
 * has the key of secrets.
 */
import {
  REQUEST_KEY_SUBJECT,
  RequestKeyAnswer,
  type RequestKeyQuestion,
} from "../../../../schemas/rendering/request-key.ts";
import { ask } from "../../../runtime/bus/ask.ts";
import type { Bus } from "../../../runtime/bus/bus.ts";

const ANSWER_MS_MAX = 5_000;

/** The key was not opened now. Another process of the role `actors` may open it later. */
export class RequestKeyNotOpened extends Error {}

/** No key of the process that answered opens it. */
export class NoRequestKey extends RequestKeyNotOpened {}

export class RequestKeys {
  readonly #bus: Bus;

  constructor(bus: Bus) {
    this.#bus = bus;
  }

  /**
   * Resolves with the key. All errors let the task retry: while the platform's key is rotated, the process that answered
   * may lack a key that the others have.
   */
  async open(question: RequestKeyQuestion): Promise<string> {
    const payload = JSON.stringify(question);
    const asked = await ask(this.#bus, REQUEST_KEY_SUBJECT, payload, { timeoutMs: ANSWER_MS_MAX });
    if (typeof asked === "string")
      throw new RequestKeyNotOpened("Cannot open request of a job: no actors answer");
    const answer = RequestKeyAnswer.parse(JSON.parse(asked.answer.string()));
    if ("key" in answer) return answer.key;
    throw new NoRequestKey(
      "Cannot run job: no host of actors that answered has the key of its request",
    );
  }
}

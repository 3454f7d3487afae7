/** Which requests the code of apps was given: a host says so, and where it is gone then no other runs them a second time. */
import { randomBytes } from "node:crypto";
import type { AnswerOn } from "../../actors/runtime/answer.ts";
import type { EntryRequest } from "../../schemas/agent.ts";
import { type AppRequest, isSafeMethod } from "../../schemas/app-exchange.ts";
import { begunSubject } from "../../schemas/subjects.ts";

export class BegunRequests {
  /** Of this gateway, and no other. */
  readonly #subject = begunSubject(randomBytes(8).toString("hex"));
  readonly #underWay = new Map<string, NonNullable<EntryRequest["begun"]>>();
  #last = 0;

  /** Hears for as long as the connection is there. */
  constructor(answerOn: AnswerOn) {
    answerOn(this.#subject, (request) => {
      const begun = this.#underWay.get(request);
      if (begun) begun.isKnown = true;
      return "";
    });
  }

  /** What is called is written anew for each try: so the next host sees what was heard since. */
  async run<T>(request: AppRequest, call: (request: EntryRequest) => Promise<T>): Promise<T> {
    if (isSafeMethod(request.method)) return call(request);
    this.#last += 1;
    const number = String(this.#last);
    const begun = { subject: this.#subject, request: number };
    this.#underWay.set(number, begun);
    try {
      return await call({ ...request, begun });
    } finally {
      this.#underWay.delete(number);
    }
  }
}

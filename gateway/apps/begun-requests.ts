/** Permits one host to run a request to an app's code, so that a request whose host was lost is not run twice. */
import { randomBytes } from "node:crypto";
import type { EntryRequest } from "../../schemas/apps/agent.ts";
import { type AppRequest, isSafeMethod } from "../../schemas/apps/app-exchange.ts";
import { begunSubject } from "../../schemas/subjects.ts";

interface Question {
  subject: string;
  string(): string;
  respond(answer: Uint8Array): unknown;
}

/** Answers every request for a permit on a subject below `name`, including requests from this process. */
export type AnswerBelow = (name: string, answer: (question: Question) => void) => void;

/** The answer that permits a run. Any other refuses it. */
const PERMITTED = Buffer.from("permitted");
const REFUSED = Buffer.from("refused");

export class BegunRequests {
  /** A subject that no other gateway uses. */
  readonly #subject = begunSubject(randomBytes(8).toString("hex"));
  /** The permitted run of each request, by the request's subject. */
  readonly #runs = new Map<string, string | undefined>();
  #last = 0;

  constructor(answerBelow: AnswerBelow) {
    answerBelow(this.#subject, (question) => {
      question.respond(this.#permits(question.subject, question.string()) ? PERMITTED : REFUSED);
    });
  }

  /**
   * Calls the app. A host must get a permit before the code receives the request, unless the request's method is
   * safe.
   */
  async run<T>(request: AppRequest, call: (request: EntryRequest) => Promise<T>): Promise<T> {
    if (isSafeMethod(request.method)) return call(request);
    this.#last += 1;
    const subject = `${this.#subject}.${this.#last}`;
    this.#runs.set(subject, undefined);
    try {
      return await call({ ...request, permit: { subject } });
    } finally {
      this.#runs.delete(subject);
    }
  }

  /** A host may ask again because the answer was lost. It gets the same answer. */
  #permits(subject: string, run: string): boolean {
    if (!this.#runs.has(subject)) return false;
    const permitted = this.#runs.get(subject) ?? run;
    this.#runs.set(subject, permitted);
    return permitted === run;
  }
}

/**
 * Which requests the code of apps was given: a host says so, and where it is gone then no other runs them a second
 * time.
 */
import { randomBytes } from "node:crypto";
import type { EntryRequest } from "../../schemas/apps/agent.ts";
import { type AppRequest, isSafeMethod } from "../../schemas/apps/app-exchange.ts";
import { begunSubject } from "../../schemas/subjects.ts";

/** Calls back with every message below `name`, including those of this process, while the connection lives. */
export type HearBelow = (name: string, hear: (heard: { string(): string }) => void) => void;

export class BegunRequests {
  /** A name of this gateway only. */
  readonly #subject = begunSubject(randomBytes(8).toString("hex"));
  readonly #underWay = new Map<string, NonNullable<EntryRequest["begun"]>>();
  #last = 0;

  constructor(hearBelow: HearBelow) {
    hearBelow(this.#subject, (heard) => {
      const begun = this.#underWay.get(heard.string());
      if (begun) begun.isKnown = true;
    });
  }

  /** Calls with a fresh request for each try, so that the next host learns what was heard since. */
  async run<T>(request: AppRequest, call: (request: EntryRequest) => Promise<T>): Promise<T> {
    if (isSafeMethod(request.method)) return call(request);
    this.#last += 1;
    const number = String(this.#last);
    const begun = { subject: `${this.#subject}.${number}`, request: number };
    this.#underWay.set(number, begun);
    try {
      return await call({ ...request, begun });
    } finally {
      this.#underWay.delete(number);
    }
  }
}

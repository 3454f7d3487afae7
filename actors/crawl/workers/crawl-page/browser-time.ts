/** The browser time of a worker's turns: what they have used is told to their account as it adds up, and more is asked for. */
import { account } from "../../../../schemas/account/account.ts";
import { type Envelope, envelope } from "../../../../schemas/contract.ts";
import type { Turn } from "../../../../schemas/crawl/crawl-page.ts";
import type { ActorClient } from "../../../runtime/actor-client.ts";

/**
 * Browser time that a worker's turns have used of an account is told when so much has come together. What is asked before
 * each page knows of what its own worker has not told: a limit is passed by the pages that are in browsers when it is
 * reached, and by less than this for each further worker.
 */
export const BROWSER_TIME_TOLD_MS = 10_000;

/** Why the account may have no more browser time, if so, where so much is used and not told yet. */
export type OutOfTime = (
  account: string,
  untoldMs: number,
  call: ActorClient["call"],
) => Promise<string | undefined>;

/** Milliseconds by account, of all turns of a worker together: each turn for itself would know of its own alone. */
export type Untold = Map<string, number>;

interface BrowserTimeParts {
  turn: Turn;
  untold: Untold;
  call: ActorClient["call"];
  /** Undefined where loading takes none. */
  outOfTime: OutOfTime | undefined;
}

export class BrowserTime {
  readonly #parts: BrowserTimeParts;
  #isUsed = false;
  #told = 0;

  constructor(parts: BrowserTimeParts) {
    this.#parts = parts;
  }

  /** Why there is none for another page. */
  async lack(): Promise<string | undefined> {
    const { outOfTime, turn, call } = this.#parts;
    return await outOfTime?.(turn.account, this.#untoldMs, call);
  }

  get #untoldMs(): number {
    const { untold, turn } = this.#parts;
    return untold.get(turn.account) ?? 0;
  }

  /** What is to be sent now, where that is much. */
  add(ms: number): Envelope | undefined {
    if (ms === 0) return undefined;
    const { untold, turn: task } = this.#parts;
    this.#isUsed = true;
    untold.set(task.account, this.#untoldMs + ms);
    if (this.#untoldMs < BROWSER_TIME_TOLD_MS) return undefined;
    this.#told += 1;
    return this.#take({ taskId: `${task.turn}.${this.#told}`, isPart: true });
  }

  /** What is to be sent when the turn is over, where it has used any. */
  end(): Envelope[] {
    if (!this.#isUsed) return [];
    return [this.#take({ taskId: this.#parts.turn.turn })];
  }

  #take(report: { taskId: string; isPart?: true }): Envelope {
    const ms = this.#untoldMs;
    const { untold, turn } = this.#parts;
    untold.delete(turn.account);
    return envelope(account, turn.account, "browserUsed", { ms, ...report });
  }
}

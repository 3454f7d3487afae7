/** The browser time of a worker's turns: reports used time to the account, and checks for more. */
import { type Envelope, envelope } from "../../../../schemas/contract.ts";
import type { Turn } from "../../../../schemas/crawl/crawl-page.ts";
import { browserTime } from "../../../../schemas/rendering/browser-time.ts";
import type { ActorClient } from "../../../runtime/calls/actor-client.ts";

/**
 * When a worker has this much unreported browser time of an account, it reports the time. The check before each page
 * counts the unreported time of its own worker only. So an account may exceed its limit: by the pages that are in
 * browsers at that time, and by less than this value for each further worker.
 */
export const BROWSER_TIME_REPORT_MS = 10_000;

/**
 * Resolves with the reason why the account must not use more browser time; undefined if it may use more. `untoldMs`
 * is the browser time that this worker has used and not reported.
 */
export type OutOfTime = (
  account: string,
  untoldMs: number,
  call: ActorClient["call"],
) => Promise<string | undefined>;

/** Unreported milliseconds by account, shared by all turns of a worker: one turn would know only its own. */
export type UnreportedTime = Map<string, number>;

interface BrowserTimeParts {
  turn: Turn;
  unreported: UnreportedTime;
  call: ActorClient["call"];
  /** Undefined where loading takes no browser time. */
  outOfTime: OutOfTime | undefined;
}

export class BrowserTime {
  readonly #parts: BrowserTimeParts;
  #isUsed = false;
  #reports = 0;

  constructor(parts: BrowserTimeParts) {
    this.#parts = parts;
  }

  /** Resolves with why there is no browser time for another page; undefined if there is. */
  async shortage(): Promise<string | undefined> {
    const { outOfTime, turn, call } = this.#parts;
    return await outOfTime?.(turn.account, this.#untoldMs, call);
  }

  get #untoldMs(): number {
    const { unreported, turn } = this.#parts;
    return unreported.get(turn.account) ?? 0;
  }

  /** Adds used time. Returns the report once it is due. */
  add(ms: number): Envelope | undefined {
    if (ms === 0) return undefined;
    const { unreported, turn: task } = this.#parts;
    this.#isUsed = true;
    unreported.set(task.account, this.#untoldMs + ms);
    if (this.#untoldMs < BROWSER_TIME_REPORT_MS) return undefined;
    this.#reports += 1;
    return this.#take({ taskId: `${task.turn}.${this.#reports}`, isPart: true });
  }

  /**
   * Returns the report at the end of a turn that used browser time: all unreported time of its account on this
   * worker.
   */
  end(): Envelope[] {
    if (!this.#isUsed) return [];
    return [this.#take({ taskId: this.#parts.turn.turn })];
  }

  #take(report: { taskId: string; isPart?: true }): Envelope {
    const ms = this.#untoldMs;
    const { unreported, turn } = this.#parts;
    unreported.delete(turn.account);
    return envelope(browserTime, turn.account, "used", { ms, ...report });
  }
}

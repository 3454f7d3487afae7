/**
 * Pauses a writer whose writes cost about the same whatever they hold. Callers that were just answered come back in a
 * moment. One write then serves them and the callers that wait already, instead of one write for each half in turn.
 * PostgreSQL's commit_delay and commit_siblings follow the same rule.
 */
import { type Clock, OVER } from "../../runtime/lib/clock.ts";

/** Up to this many callers are not worth a pause. */
const FEW = 8;
/** The share of answered callers that a pause waits for: the last ones are not worth it. */
const RETURN_SHARE = 0.75;

export class Gathering {
  readonly #clock: Clock;
  readonly #timeShare: number;
  readonly #msMax: number;
  #underWay: { enough: number; ended: AbortController } | undefined;

  /** `timeShare`: the share of the last write's time that a pause may take, `msMax` at most. */
  constructor(clock: Clock, { timeShare, msMax }: { timeShare: number; msMax: number }) {
    this.#clock = clock;
    this.#timeShare = timeShare;
    this.#msMax = msMax;
  }

  /** A caller came; `waiting` callers wait now. */
  came(waiting: number): void {
    if (this.#underWay && waiting >= this.#underWay.enough) this.#underWay.ended.abort(OVER);
  }

  /** Pauses after a write, in proportion to the time it took and the callers it answered. */
  async pause(last: { answered: number; tookMs: number; waiting: number }): Promise<void> {
    if (last.answered <= FEW) return;
    const ended = new AbortController();
    this.#underWay = { enough: last.waiting + last.answered * RETURN_SHARE, ended };
    await this.#clock.wait(Math.min(last.tookMs * this.#timeShare, this.#msMax), ended.signal);
    this.#underWay = undefined;
  }
}

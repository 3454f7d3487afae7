/**
 * The pause of a writer whose writes cost about the same whatever they hold. Callers that were just answered come back in a
 * moment: one write for them and for those who wait already, instead of one for each half in turn. The rule is that of
 * PostgreSQL's commit_delay and commit_siblings.
 */
import { type Clock, OVER } from "./clock.ts";

/** So many callers are not worth waiting for. */
const FEW = 8;
/** Of those answered, how many are waited for: the last stragglers are not worth it. */
const RETURN_SHARE = 0.75;

export class Gathering {
  readonly #clock: Clock;
  readonly #timeShare: number;
  readonly #msMax: number;
  #underWay: { enough: number; ended: AbortController } | undefined;

  /** `timeShare`: what may be spent on a pause, of the time the last write took; `msMax` at most. */
  constructor(clock: Clock, { timeShare, msMax }: { timeShare: number; msMax: number }) {
    this.#clock = clock;
    this.#timeShare = timeShare;
    this.#msMax = msMax;
  }

  /** Somebody came: so many wait now. */
  came(waiting: number): void {
    if (this.#underWay && waiting >= this.#underWay.enough) this.#underWay.ended.abort(OVER);
  }

  /** After a write that took so long and answered so many, while so many wait for the next one. */
  async pause(last: { answered: number; tookMs: number; waiting: number }): Promise<void> {
    if (last.answered <= FEW) return;
    const ended = new AbortController();
    this.#underWay = { enough: last.waiting + last.answered * RETURN_SHARE, ended };
    await this.#clock.wait(Math.min(last.tookMs * this.#timeShare, this.#msMax), ended.signal);
    this.#underWay = undefined;
  }
}

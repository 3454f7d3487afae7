/**
 * Pauses a writer if one write costs about the same for few items as for many. Callers whose writes were just
 * confirmed soon send the next ones. After a pause, one write serves these callers and those that wait already.
 * Without the pause, each of these two groups would need its own write. PostgreSQL's commit_delay and commit_siblings
 * follow the same rule.
 */
import { type Clock, OVER } from "../../runtime/lib/clock.ts";

/** If the last write served at most this number of callers, there is no pause. */
const FEW = 8;
/**
 * The share of the last write's callers whose return ends the pause early. Waiting for the rest costs more than it
 * saves.
 */
const RETURN_SHARE = 0.75;

export class Gathering {
  readonly #clock: Clock;
  readonly #timeShare: number;
  readonly #msMax: number;
  #underWay: { enough: number; ended: AbortController } | undefined;

  /** `timeShare`: the length of a pause as a share of the last write's duration. `msMax` limits the pause. */
  constructor(clock: Clock, { timeShare, msMax }: { timeShare: number; msMax: number }) {
    this.#clock = clock;
    this.#timeShare = timeShare;
    this.#msMax = msMax;
  }

  /** Notes that a caller arrived and that `waiting` callers wait now. Ends the pause if enough callers wait. */
  came(waiting: number): void {
    if (this.#underWay && waiting >= this.#underWay.enough) this.#underWay.ended.abort(OVER);
  }

  /** Pauses after a write, in proportion to the write's duration, until enough callers wait again. */
  async pause(last: { answered: number; tookMs: number; waiting: number }): Promise<void> {
    if (last.answered <= FEW) return;
    const ended = new AbortController();
    this.#underWay = { enough: last.waiting + last.answered * RETURN_SHARE, ended };
    await this.#clock.wait(Math.min(last.tookMs * this.#timeShare, this.#msMax), ended.signal);
    this.#underWay = undefined;
  }
}

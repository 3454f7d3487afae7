/** Tells a job how the requests of a turn ended, several at a time and in the order in which they did. */

import { type Envelope, envelope } from "../../../../schemas/contract.ts";
import { crawlJob, type PageOutcome } from "../../../../schemas/crawl/crawl-job.ts";
import type { Turn } from "../../../../schemas/crawl/crawl-page.ts";
import { REPORT_BYTES_MAX, REPORT_PAGES_MAX } from "../../../../schemas/crawl/limits.ts";
import { type Clock, OVER } from "../../../runtime/clock.ts";

/** Pages that come in within this time are reported together; nobody sees the difference. */
const REPORT_GATHER_MS = 20;

interface TurnReportParts {
  turn: Pick<Turn, "job" | "host" | "turn">;
  /** Resolves with whether the job has heard it: else it will, or refuses it. */
  tell(envelope: Envelope): Promise<boolean>;
  clock: Clock;
}

export class TurnReport {
  readonly #parts: TurnReportParts;
  readonly #waiting: { outcome: PageOutcome; bytes: number }[] = [];
  readonly #hurry = new AbortController();
  #sending: Promise<void> | undefined;
  #failure: { error: unknown } | undefined;
  /** By index. */
  readonly #reported = new Set<number>();

  constructor(parts: TurnReportParts) {
    this.#parts = parts;
  }

  /** Pages whose outcomes the job has heard of. */
  get reported(): number {
    return this.#reported.size;
  }

  /** Never throws: a report that could not be sent is `end`'s to tell. */
  add(outcome: PageOutcome): void {
    const bytes = Buffer.byteLength(JSON.stringify(outcome)) + 1;
    this.#waiting.push({ outcome, bytes });
    this.#sending ??= this.#sendAll();
  }

  /** Resolves when the job will hear of everything that was added; nothing may be added any more. */
  async end(): Promise<void> {
    this.#hurry.abort(OVER);
    await this.#sending;
    if (this.#failure) throw this.#failure.error;
  }

  async #sendAll(): Promise<void> {
    const { clock, tell, turn } = this.#parts;
    try {
      while (this.#waiting.length > 0) {
        // A message costs as much as a page does: of a fast site a few go together.
        if (this.#waiting.length < REPORT_PAGES_MAX) {
          await clock.wait(REPORT_GATHER_MS, this.#hurry.signal);
        }
        const outcomes = this.#nextGroup();
        const { job, host, turn: id } = turn;
        const report = envelope(crawlJob, job, "turnReported", { host, turn: id, outcomes });
        if (await tell(report)) for (const { index } of outcomes) this.#reported.add(index);
      }
      this.#sending = undefined;
    } catch (error) {
      this.#failure ??= { error };
    }
  }

  #nextGroup(): PageOutcome[] {
    let bytes = 0;
    const end = this.#waiting.findIndex((one, index) => {
      bytes += one.bytes;
      return index > 0 && (index >= REPORT_PAGES_MAX || bytes > REPORT_BYTES_MAX);
    });
    const group = this.#waiting.splice(0, end < 0 ? this.#waiting.length : end);
    return group.map(({ outcome }) => outcome);
  }
}

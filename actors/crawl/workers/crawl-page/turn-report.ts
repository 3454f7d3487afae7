/** Reports the outcomes of a turn to the job, in groups and in the order of their arrival. */

import { type Envelope, envelope } from "../../../../schemas/contract.ts";
import { crawlJob, type PageOutcome } from "../../../../schemas/crawl/crawl-job.ts";
import type { Turn } from "../../../../schemas/crawl/crawl-page.ts";
import { REPORT_BYTES_MAX, REPORT_PAGES_MAX } from "../../../../schemas/crawl/limits.ts";
import { type Clock, OVER } from "../../../runtime/lib/clock.ts";

/** Pages that arrive within this time are reported together, unnoticed by clients. */
const REPORT_GATHER_MS = 20;

interface TurnReportParts {
  turn: Pick<Turn, "job" | "host" | "turn">;
  /** Resolves with whether the job has received it. If not, the job will, or refuses it. */
  tell(envelope: Envelope): Promise<boolean>;
  clock: Clock;
  /** Receives the number of pages of each sent report, and Infinity when reports fail. */
  onSent?(pages: number): void;
}

export class TurnReport {
  readonly #parts: TurnReportParts;
  readonly #waiting: { outcome: PageOutcome; bytes: number }[] = [];
  readonly #hurry = new AbortController();
  #sending: Promise<void> | undefined;
  #failure: { error: unknown } | undefined;
  /** Indexes of reported pages. */
  readonly #reported = new Set<number>();

  constructor(parts: TurnReportParts) {
    this.#parts = parts;
  }

  /** Number of pages whose outcomes the job has received. */
  get reported(): number {
    return this.#reported.size;
  }

  /** Adds an outcome. Never throws: `end` throws the error of a failed report. */
  add(outcome: PageOutcome): void {
    const bytes = Buffer.byteLength(JSON.stringify(outcome)) + 1;
    this.#waiting.push({ outcome, bytes });
    this.#sending ??= this.#sendAll();
  }

  /** Resolves when the job will get every added outcome. Nothing may be added after it. */
  async end(): Promise<void> {
    this.#hurry.abort(OVER);
    await this.#sending;
    if (this.#failure) throw this.#failure.error;
  }

  async #sendAll(): Promise<void> {
    const { clock, tell, turn, onSent } = this.#parts;
    try {
      while (this.#waiting.length > 0) {
        // A message costs as much as a page, so pages of a fast site are grouped.
        if (this.#waiting.length < REPORT_PAGES_MAX) {
          await clock.wait(REPORT_GATHER_MS, this.#hurry.signal);
        }
        const outcomes = this.#nextGroup();
        const { job, host, turn: id } = turn;
        const report = envelope(crawlJob, job, "turnReported", { host, turn: id, outcomes });
        if (await tell(report)) for (const { index } of outcomes) this.#reported.add(index);
        onSent?.(outcomes.length);
      }
      this.#sending = undefined;
    } catch (error) {
      this.#failure ??= { error };
      onSent?.(Number.POSITIVE_INFINITY);
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

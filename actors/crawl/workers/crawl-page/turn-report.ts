/** Reports the outcomes of a turn to the job, in groups and in the order of their arrival. */

import { type Envelope, envelope } from "../../../../schemas/contract.ts";
import { crawlJob, type PageOutcome } from "../../../../schemas/crawl/crawl-job.ts";
import type { Turn } from "../../../../schemas/crawl/crawl-page.ts";
import { REPORT_BYTES_MAX, REPORT_PAGES_MAX } from "../../../../schemas/crawl/limits.ts";
import { countWork } from "../../../../schemas/meter.ts";
import { type Clock, OVER } from "../../../runtime/lib/clock.ts";

/**
 * Time in which outcomes are gathered for one report, so that records that are stored together are reported together.
 * Requests wait for the report, so the time is short.
 */
const REPORT_GATHER_MS = 1;

interface TurnReportParts {
  turn: Pick<Turn, "job" | "host" | "turn">;
  /**
   * Sends a message to the job. Resolves with true if the job has received it. Otherwise the message is in the job's
   * mail, so the job will receive or refuse it later.
   */
  tell(envelope: Envelope): Promise<boolean>;
  clock: Clock;
}

interface Waiting {
  outcome: PageOutcome;
  bytes: number;
  settle: PromiseWithResolvers<void>;
}

export class TurnReport {
  readonly #parts: TurnReportParts;
  readonly #waiting: Waiting[] = [];
  readonly #hurry = new AbortController();
  #isSending = false;
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

  /**
   * Adds an outcome. Resolves when its report is sent. After a failed report, every call rejects with the error of that
   * report.
   */
  add(outcome: PageOutcome): Promise<void> {
    if (this.#failure) return Promise.reject(this.#failure.error);
    countWork("crawl_pages_total", { outcome: outcome.kind });
    const bytes = Buffer.byteLength(JSON.stringify(outcome)) + 1;
    const settle = Promise.withResolvers<void>();
    this.#waiting.push({ outcome, bytes, settle });
    if (!this.#isSending) void this.#sendAll();
    return settle.promise;
  }

  /** Sends outcomes without gathering from now on. */
  hurry(): void {
    this.#hurry.abort(OVER);
  }

  /** Never rejects: each outcome has its own promise. */
  async #sendAll(): Promise<void> {
    const { clock, tell, turn } = this.#parts;
    const { job, host, turn: id } = turn;
    this.#isSending = true;
    while (this.#waiting.length > 0) {
      // A message costs as much as a page, so pages of a fast site are grouped.
      if (this.#waiting.length < REPORT_PAGES_MAX) {
        await clock.wait(REPORT_GATHER_MS, this.#hurry.signal);
      }
      const group = this.#nextGroup();
      const outcomes = group.map(({ outcome }) => outcome);
      try {
        const report = envelope(crawlJob, job, "turnReported", { host, turn: id, outcomes });
        if (await tell(report)) for (const { index } of outcomes) this.#reported.add(index);
        for (const { settle } of group) settle.resolve();
      } catch (error) {
        this.#failure = { error };
        for (const { settle } of [...group, ...this.#waiting.splice(0)]) settle.reject(error);
      }
    }
    this.#isSending = false;
  }

  #nextGroup(): Waiting[] {
    let bytes = 0;
    const end = this.#waiting.findIndex((one, index) => {
      bytes += one.bytes;
      return index > 0 && (index >= REPORT_PAGES_MAX || bytes > REPORT_BYTES_MAX);
    });
    return this.#waiting.splice(0, end < 0 ? this.#waiting.length : end);
  }
}

/**
 * Sends the reports of a running turn while its requests continue: outcomes to the job, and departures to the site.
 * Keeps the first fault of this platform.
 */
import { type Envelope, envelope } from "../../../../schemas/contract.ts";
import { crawlJob, type PageOutcome } from "../../../../schemas/crawl/crawl-job.ts";
import type { Turn, TurnRequest } from "../../../../schemas/crawl/crawl-page.ts";
import type { PageVerdict } from "../../../../schemas/crawl/site.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";
import type { TaskContext } from "../../../runtime/workers/define-worker.ts";
import { isPage } from "../../lib/records/cached-pages.ts";
import { TurnReport } from "./turn-report.ts";

interface TurnMailParts extends Pick<TaskContext, "signal" | "send" | "tell"> {
  turn: Turn;
  clock: Clock;
}

export class TurnMail {
  readonly #parts: TurnMailParts;
  readonly #report: TurnReport;
  /** Pages that are being made into records, and starts that are being reported to the site. */
  readonly #underWay = new Set<Promise<void>>();
  readonly #unsent: Envelope[] = [];
  #failure: { error: unknown } | undefined;

  constructor(parts: TurnMailParts) {
    this.#parts = parts;
    this.#report = new TurnReport({ ...parts, tell: this.notify });
  }

  /** Messages that could not be sent because the task was taken away. */
  get unsent(): readonly Envelope[] {
    return this.#unsent;
  }

  /** The first fault of this platform that prevented a report. */
  get failure(): { error: unknown } | undefined {
    return this.#failure;
  }

  readonly fail = (error: unknown): void => {
    this.#failure ??= { error };
  };

  readonly send = async (envelope: Envelope): Promise<void> => {
    const { signal, send } = this.#parts;
    if (signal.aborted) this.#unsent.push(envelope);
    else await send([envelope]);
  };

  /** Sends a message that may arrive twice. Resolves with true if its actor has received it as a call. */
  readonly notify = async (envelope: Envelope): Promise<boolean> => {
    const { signal, tell } = this.#parts;
    if (!signal.aborted) return tell(envelope);
    this.#unsent.push(envelope);
    return false;
  };

  /** Number of pages whose outcomes the job has received. */
  get reported(): number {
    return this.#report.reported;
  }

  report(outcome: PageOutcome): void {
    void this.reportLater(async () => outcome);
  }

  /** Reports a fetched page once its outcome is made. Resolves when the report is sent, or after a fault. */
  reportLater(make: () => Promise<PageOutcome>): Promise<void> {
    return this.later(async () => {
      const outcome = await make();
      await this.#report.add(outcome).catch(this.fail);
    });
  }

  refuse(request: TurnRequest, verdict: PageVerdict | undefined): void {
    const { reason, unreachable } =
      verdict?.allowed === false ? verdict : { reason: "The site gave no verdict" };
    if (isPage(request)) {
      const { index } = request;
      this.report({ kind: "disallowed", index, reason, ...(unreachable && { unreachable }) });
    } else {
      const { job, turn } = this.#parts.turn;
      const { url, nesting } = request;
      const end = { failed: reason, retry: false };
      const slice = { turn, url, nesting, urls: [], nested: [], end };
      void this.later(() => this.send(envelope(crawlJob, job, "sitemapRead", slice)));
    }
  }

  /**
   * Runs work in the background; `end` waits for it. The promise never rejects: an error is recorded as the failure,
   * unless the task was aborted.
   */
  later(work: () => Promise<void>): Promise<void> {
    const promise = work()
      .catch((error: unknown) => {
        if (!this.#parts.signal.aborted) this.fail(error);
      })
      .finally(() => this.#underWay.delete(promise));
    this.#underWay.add(promise);
    return promise;
  }

  /** Resolves when all background work is done. No report may be added after it. */
  async end(): Promise<void> {
    this.#report.hurry();
    await Promise.all(this.#underWay);
  }
}

/** What is told of a turn while it runs: outcomes as they come, in the background of its requests; and what went wrong in that. */
import { type Envelope, envelope } from "../../../../schemas/contract.ts";
import { crawlJob, type PageOutcome } from "../../../../schemas/crawl/crawl-job.ts";
import type { Turn, TurnRequest } from "../../../../schemas/crawl/crawl-page.ts";
import type { PageVerdict } from "../../../../schemas/crawl/site.ts";
import type { Clock } from "../../../runtime/clock.ts";
import type { TaskContext } from "../../../runtime/define-worker.ts";
import { isPage } from "../../lib/records/cached-pages.ts";
import { TurnReport } from "./turn-report.ts";

interface TurnMailParts extends Pick<TaskContext, "signal" | "send" | "tell"> {
  turn: Turn;
  clock: Clock;
}

export class TurnMail {
  readonly #parts: TurnMailParts;
  readonly #report: TurnReport;
  /** Pages that have come and are being made into records, and starts that the site is being told of. */
  readonly #underWay = new Set<Promise<void>>();
  readonly #unsent: Envelope[] = [];
  #failure: { error: unknown } | undefined;

  constructor(parts: TurnMailParts) {
    this.#parts = parts;
    this.#report = new TurnReport({ ...parts, tell: this.tell });
  }

  /** What could not be sent any more, since the task was taken from us. */
  get unsent(): readonly Envelope[] {
    return this.#unsent;
  }

  /** The first fault of ours that kept something from the job. */
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

  /** What does no harm where it is heard twice. Resolves with whether it was heard. */
  readonly tell = async (envelope: Envelope): Promise<boolean> => {
    const { signal, tell } = this.#parts;
    if (!signal.aborted) return tell(envelope);
    this.#unsent.push(envelope);
    return false;
  };

  /** Pages whose outcomes the job has heard of. */
  get reported(): number {
    return this.#report.reported;
  }

  report(outcome: PageOutcome): void {
    this.#report.add(outcome);
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
      this.later(() => this.send(envelope(crawlJob, job, "sitemapRead", slice)));
    }
  }

  /** Work that the requests need not wait for, and the end of the turn does. */
  later(work: () => Promise<void>): void {
    const promise = work()
      .catch((error: unknown) => {
        if (!this.#parts.signal.aborted) this.fail(error);
      })
      .finally(() => this.#underWay.delete(promise));
    this.#underWay.add(promise);
  }

  /** Resolves when nothing is under way any more; nothing may be told after it. */
  async end(): Promise<void> {
    await Promise.all(this.#underWay);
    await this.#report.end().catch(this.fail);
  }
}

/** A list of crawls without a bus. */
import type { DeepReadonly, Envelope, Input } from "../../../../schemas/contract.ts";
import type { CrawlStatus } from "../../../../schemas/crawl/crawl-job.ts";
import { runHandler } from "../../../../scripts/testing/run-handler.ts";
import { crawlListActor } from "../crawl-list.ts";
import type { CrawlListRow, CrawlListState } from "../crawl-list-state.ts";

type Messages = typeof crawlListActor.contract.messages;

export const id = (number: number) => number.toString(16).padStart(32, "0");

/** Runs messages of one list and keeps its state and rows between them. */
export class List {
  now = 1_000;
  state: DeepReadonly<CrawlListState> = crawlListActor.initial;
  readonly rows = new Map<string, DeepReadonly<CrawlListRow>>();
  changed = false;
  /** Sends that `take` has not returned yet. */
  sent: Envelope[] = [];

  run<N extends keyof Messages & string>(message: N, input: Input<Messages[N]>) {
    const context = { now: this.now, rows: this.rows };
    const handled = runHandler(crawlListActor, message, this.state, input, context);
    this.state = handled.state;
    this.changed = handled.changed;
    this.sent.push(...handled.send);
    for (const [name, row] of Object.entries(handled.rows)) {
      if (row === null) this.rows.delete(name);
      else this.rows.set(name, row as CrawlListRow);
    }
    return handled.reply;
  }

  /** Removes the sends from `sent` and returns them. */
  take(): Envelope[] {
    return this.sent.splice(0);
  }

  start(number: number): void {
    this.run("started", { id: id(number), url: `https://a.example/${number}` });
  }

  end(number: number, status: CrawlStatus): void {
    this.run("ended", { id: id(number), status });
  }
}

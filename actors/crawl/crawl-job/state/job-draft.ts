/** The transition that a handler of a crawl job builds. It also checks the limits of one message. */
import { strict as assert } from "node:assert";
import type { DeepReadonly } from "../../../../schemas/contract.ts";
import { Draft } from "../../../runtime/draft.ts";
import type { CrawlJobRow, CrawlJobState } from "./crawl-job-state.ts";
import { packRow } from "./packed-rows.ts";
import { type PreparedPlan, readPlan } from "./plan.ts";

/**
 * Rows that one message of a job changes before it leaves further addresses to a later message.
 *
 * Each address adds at most seven rows, and the rest of a transition up to 84, so TRANSITION_ROWS_MAX holds.
 */
export const STEP_ROWS_MAX = 360;
/** Bytes of rows that one message of a job may write before it leaves further addresses to a later message. */
export const STEP_BYTES_MAX = 500_000;
/** Hosts that one message of a job may touch before it leaves further addresses to a later message. */
export const STEP_HOSTS_MAX = 140;

/**
 * Maximum steps of the pattern matcher in one message. A step takes some nanoseconds. The maximum is enough for 2,500
 * addresses without patterns, in about 20 ms.
 */
export const STEP_WORK_MAX = 10_000_000;

type Row = DeepReadonly<CrawlJobRow>;
type RowOf<T extends Row["type"]> = Extract<Row, { type: T }>;

export class JobDraft extends Draft<CrawlJobState, CrawlJobRow, "timeOut" | "expire" | "askAgain"> {
  /** Hosts whose number of wanted requests may have changed. Their sites may need a message. */
  readonly touchedHosts = new Set<string>();
  /** Hosts whose site must send its robots.txt, even where the number of wanted requests is unchanged. */
  readonly askedHosts = new Set<string>();
  /** Indexes of records that this message settled, for clients that watch the job. */
  readonly settled: number[] = [];
  #bytes = 0;
  #work = 0;

  get plan(): PreparedPlan {
    return readPlan((row) => this.row(row));
  }

  /** Number of pages that the limit still admits. */
  get pagesLeft(): number {
    return this.plan.plan.limit - this.state.admitted;
  }

  get isRunning(): boolean {
    return this.state.status === "running";
  }

  findRow<T extends Row["type"]>(type: T, name: string): RowOf<T> | undefined {
    const found = this.row(name);
    assert(found === undefined || found.type === type, `Row ${name} is a ${type}`);
    return found as RowOf<T> | undefined;
  }

  getRow<T extends Row["type"]>(type: T, name: string): RowOf<T> {
    const found = this.findRow(type, name);
    assert(found, `Row ${name} exists`);
    return found;
  }

  /** Returns the transition with its rows in their stored form. */
  override transition() {
    const transition = super.transition();
    const { rows = {} } = transition;
    for (const [name, row] of Object.entries(rows)) if (row) rows[name] = packRow(row);
    return transition;
  }

  /** Counts the cost of a further address or row: bytes of rows, and work. */
  spend({ bytes, work }: { bytes: number; work: number }): void {
    this.#bytes += bytes;
    this.#work += work;
  }

  /** Whether this message must leave further addresses to a later one. */
  get isFull(): boolean {
    return (
      this.writtenRows >= STEP_ROWS_MAX ||
      this.#bytes >= STEP_BYTES_MAX ||
      this.#work >= STEP_WORK_MAX ||
      this.touchedHosts.size >= STEP_HOSTS_MAX
    );
  }
}

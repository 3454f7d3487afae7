/** What one message changes of a job, gathered while it is handled and kept within the limits of a transition. */
import { strict as assert } from "node:assert";
import type { DeepReadonly, Envelope } from "../../../../schemas/contract.ts";
import { STEP_BYTES_MAX, STEP_HOSTS_MAX, STEP_ROWS_MAX } from "../../../../schemas/crawl/limits.ts";
import type { HandlerContext } from "../../../runtime/define-actor.ts";
import type { CrawlJobRow, CrawlJobState } from "./crawl-job-state.ts";
import { type PreparedPlan, readPlan } from "./plan.ts";

/** Steps of some nanoseconds that looking at addresses may take: 2,500 plain ones, some 20 ms. */
export const STEP_WORK_MAX = 10_000_000;

type Row = DeepReadonly<CrawlJobRow>;
type RowOf<T extends Row["type"]> = Extract<Row, { type: T }>;
type State = DeepReadonly<CrawlJobState>;
/** Its members are replaced, never changed. */
type OpenState = { -readonly [member in keyof State]: State[member] };
type Reminders = Partial<Record<"timeOut" | "expire" | "askAgain", number | null>>;

export class JobDraft {
  readonly key: string;
  readonly now: number;
  readonly state: OpenState;
  /** Hosts whose site may have to be told what is wanted there. */
  readonly touchedHosts = new Set<string>();
  /** Hosts whose site has to be asked for its robots.txt, though it knows what is wanted. */
  readonly askedHosts = new Set<string>();
  readonly remind: Reminders = {};
  /** Records that were settled, for those who watch. */
  readonly settled: number[] = [];
  readonly #stored: ReadonlyMap<string, Row>;
  readonly #rows = new Map<string, Row | null>();
  readonly #sends: Envelope[] = [];
  #bytes = 0;
  #work = 0;

  constructor(state: State, { key, now, rows }: HandlerContext<CrawlJobRow>) {
    this.key = key;
    this.now = now;
    this.state = { ...state };
    this.#stored = rows;
  }

  get plan(): PreparedPlan {
    return readPlan((row) => this.get(row));
  }

  /** Pages that may still be admitted. */
  get room(): number {
    return this.plan.plan.limit - this.state.admitted;
  }

  get isRunning(): boolean {
    return this.state.status === "running";
  }

  get(row: string): Row | undefined {
    const changed = this.#rows.get(row);
    return changed === undefined ? this.#stored.get(row) : (changed ?? undefined);
  }

  find<T extends Row["type"]>(type: T, row: string): RowOf<T> | undefined {
    const found = this.get(row);
    assert(found === undefined || found.type === type, `Row ${row} is a ${type}`);
    return found as RowOf<T> | undefined;
  }

  take<T extends Row["type"]>(type: T, row: string): RowOf<T> {
    const found = this.find(type, row);
    assert(found, `Row ${row} exists`);
    return found;
  }

  set(row: string, value: Row | null): void {
    // What was made and removed by one message was never stored.
    if (value === null && !this.#stored.has(row)) this.#rows.delete(row);
    else this.#rows.set(row, value);
  }

  send(envelope: Envelope): void {
    this.#sends.push(envelope);
  }

  /** Counts what looking at one more address costs, in bytes of rows and in work. */
  spend({ bytes, work }: { bytes: number; work: number }): void {
    this.#bytes += bytes;
    this.#work += work;
  }

  /** No more addresses are looked at by this message. */
  get isFull(): boolean {
    return (
      this.#rows.size >= STEP_ROWS_MAX ||
      this.#bytes >= STEP_BYTES_MAX ||
      this.#work >= STEP_WORK_MAX ||
      this.touchedHosts.size >= STEP_HOSTS_MAX
    );
  }

  transition() {
    return {
      state: this.state as State,
      rows: Object.fromEntries(this.#rows),
      send: this.#sends,
      remind: this.remind,
    };
  }
}

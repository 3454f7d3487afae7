/**
 * An agent's queue: calls of its methods that run one after the other. Calls whose attempts have all failed are kept
 * for inspection.
 */
import { randomUUID } from "node:crypto";
import { readRetry, retryDelayMs } from "../package/retry.ts";
import type { SqlRow } from "../package/sql.ts";
import type { QueueItem, RetryOptions } from "../package/types.ts";
import type { AgentCore } from "./agent-core.ts";
import type { DuePart } from "./due-work.ts";
import { assertMethod } from "./methods.ts";
import { fromJson, toJson } from "./own-tables.ts";

export class Queue implements DuePart {
  readonly #agent: AgentCore;
  #running: Promise<void> | undefined;

  constructor(agent: AgentCore) {
    this.#agent = agent;
  }

  /** Adds an item. If `id` is the id of an existing item, replaces that item. */
  push(
    callback: string,
    payload: unknown,
    options: { retry?: RetryOptions; id?: string } = {},
  ): string {
    assertMethod(this.#agent.instance, callback);
    const { id = randomUUID() } = options;
    const now = Date.now();
    this.#agent.database.keep(
      `INSERT INTO _trunkline_queue (id, callback, payload, created_at, retry, next_at) VALUES (?, ?, ?, ?, ?, ?)
      ON CONFLICT (id) DO UPDATE SET callback = excluded.callback, payload = excluded.payload, retry = excluded.retry,
      created_at = excluded.created_at, next_at = excluded.next_at, attempts = 0, error = NULL`,
      id,
      callback,
      toJson("the payload of a queue", payload),
      now,
      JSON.stringify(readRetry(options.retry, this.#agent.classOptions.retry)),
      now,
    );
    this.#agent.due.changed();
    return id;
  }

  remove(id: string): boolean {
    return (
      this.#changed(
        this.#agent.database.own("DELETE FROM _trunkline_queue WHERE id = ? RETURNING id", id),
      ) > 0
    );
  }

  removeAll(callback?: string): number {
    const rows = this.#agent.database.own(
      "DELETE FROM _trunkline_queue WHERE ? IS NULL OR callback = ? RETURNING id",
      callback ?? null,
      callback ?? null,
    );
    return this.#changed(rows);
  }

  /** Starts a failed item again, at its place in the queue. */
  retry(id: string): boolean {
    const rows = this.#agent.database.own(
      "UPDATE _trunkline_queue SET next_at = ?, attempts = 0, error = NULL WHERE id = ? AND next_at IS NULL RETURNING id",
      Date.now(),
      id,
    );
    return this.#changed(rows) > 0;
  }

  get(id: string): QueueItem | undefined {
    const [row] = this.#agent.database.own("SELECT * FROM _trunkline_queue WHERE id = ?", id);
    return row === undefined ? undefined : toItem(row);
  }

  list(): QueueItem[] {
    return this.#agent.database.own("SELECT * FROM _trunkline_queue ORDER BY position").map(toItem);
  }

  /**
   * The whole queue waits for its first item that has not failed, even while that item waits for its next attempt.
   */
  nextAt(): number | undefined {
    const at = this.#head()?.next_at;
    return typeof at === "number" ? at : undefined;
  }

  begin(): void {
    if (this.#running !== undefined) return;
    this.#running = this.#run().finally(() => {
      this.#running = undefined;
      this.#agent.due.changed();
    });
    this.#agent.background(() => this.#running);
  }

  async settled(): Promise<void> {
    await this.#running;
  }

  async #run(): Promise<void> {
    await this.#agent.ready();
    for (;;) {
      const row = this.#head();
      if (row === undefined || Number(row.next_at) > Date.now()) return;
      await this.#runOne(row);
    }
  }

  async #runOne(row: SqlRow): Promise<void> {
    const position = Number(row.position);
    const attempts = Number(row.attempts) + 1;
    const retry = readRetry(fromJson(row.retry) as RetryOptions);
    const { database } = this.#agent;
    database.own("UPDATE _trunkline_queue SET attempts = ? WHERE position = ?", attempts, position);
    await this.#agent.markBegun(Number(row.next_at));
    // If another item replaced this one while it ran, that item keeps its own attempts.
    const isSame = "position = ? AND created_at = ? AND payload IS ?";
    const same = [position, row.created_at as number, row.payload as string | null] as const;
    try {
      if (attempts > retry.maxAttempts)
        throw new Error("The process ended in the middle of each try");
      const item = toItem({ ...row, attempts });
      await this.#agent.call(item.callback, item.payload, item);
      database.own(`DELETE FROM _trunkline_queue WHERE ${isSame}`, ...same);
    } catch (error) {
      const isLast = attempts >= retry.maxAttempts;
      const nextAt = isLast ? null : Math.ceil(Date.now() + retryDelayMs(retry, attempts));
      database.own(
        `UPDATE _trunkline_queue SET next_at = ?, error = ? WHERE ${isSame}`,
        nextAt,
        String(error),
        ...same,
      );
      if (isLast) await this.#agent.report(error);
      else this.#agent.log("warn", error);
    }
    this.#agent.due.changed();
    this.#agent.gate.flushSoon();
  }

  #head(): SqlRow | undefined {
    return this.#agent.database.own(
      "SELECT * FROM _trunkline_queue WHERE next_at IS NOT NULL ORDER BY position LIMIT 1",
    )[0];
  }

  #changed(rows: SqlRow[]): number {
    if (rows.length > 0) this.#agent.due.changed();
    return rows.length;
  }
}

function toItem(row: SqlRow): QueueItem {
  return {
    id: String(row.id),
    callback: String(row.callback),
    payload: fromJson(row.payload),
    createdAt: Math.floor(Number(row.created_at) / 1000),
    retry: fromJson(row.retry) as RetryOptions,
    attempts: Number(row.attempts),
    status: row.next_at === null ? "failed" : "pending",
    ...(row.error !== null && { error: String(row.error) }),
  };
}

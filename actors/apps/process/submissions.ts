/** Submissions: accepted work with an id and a durable status. Without retry options, it runs at most one time. */

import { randomUUID } from "node:crypto";
import { readRetry, retryDelayMs } from "../package/retry.ts";
import type { SqlRow } from "../package/sql.ts";
import type {
  CancelOutcome,
  RetryOptions,
  Submission,
  SubmissionContext,
  SubmissionReceipt,
  SubmissionStatus,
  SubmitOptions,
} from "../package/types.ts";
import type { AgentCore } from "./agent-core.ts";
import type { DuePart } from "./due-work.ts";
import { assertMethod } from "./methods.ts";
import { clearTimeout, setTimeout } from "./native-timers.ts";
import { fromJson, toJson } from "./own-tables.ts";

/** Limit of one agent's concurrent submissions. The limit below is for the number of entries in one list. */
export const AGENT_SUBMISSIONS_RUNNING_MAX = 8;
const AGENT_SUBMISSIONS_LISTED_MAX = 1_000;

/** By default, a submission is attempted only one time. */
const ONCE = { maxAttempts: 1 };

export class Submissions implements DuePart {
  readonly #agent: AgentCore;
  readonly #running = new Map<string, { abort: AbortController; done: Promise<void> }>();
  readonly #watchers = new Map<string, Set<() => void>>();

  constructor(agent: AgentCore) {
    this.#agent = agent;
    this.#interrupt();
  }

  submit(method: string, payload: unknown, options: SubmitOptions = {}): SubmissionReceipt {
    assertMethod(this.#agent.instance, method);
    const { submissionId: id = randomUUID(), idempotencyKey } = options;
    const [known] = this.#agent.database.own(
      "SELECT * FROM _trunkline_submissions WHERE id = ? OR idempotency_key = ?",
      id,
      idempotencyKey ?? null,
    );
    if (known !== undefined) return { ...toSubmission(known), accepted: false };
    const now = Date.now();
    this.#agent.database.keep(
      `INSERT INTO _trunkline_submissions (id, idempotency_key, method, payload, metadata, retry, status, next_at, created_at)
      VALUES (?, ?, ?, ?, ?, ?, 'pending', ?, ?)`,
      id,
      idempotencyKey ?? null,
      method,
      toJson("the payload of a submission", payload),
      toJson("the metadata of a submission", options.metadata),
      JSON.stringify(readRetry(options.retry, ONCE)),
      now,
      now,
    );
    this.#agent.due.changed();
    return { ...(this.inspect(id) as Submission), accepted: true };
  }

  inspect(id: string): Submission | undefined {
    const row = this.#row(id);
    return row === undefined ? undefined : toSubmission(row);
  }

  list({
    status,
    limit = AGENT_SUBMISSIONS_LISTED_MAX,
  }: {
    status?: SubmissionStatus;
    limit?: number;
  } = {}): Submission[] {
    const rows = this.#agent.database.own(
      "SELECT * FROM _trunkline_submissions WHERE ? IS NULL OR status = ? ORDER BY position DESC LIMIT ?",
      status ?? null,
      status ?? null,
      Math.min(limit, AGENT_SUBMISSIONS_LISTED_MAX),
    );
    return rows.map(toSubmission);
  }

  /**
   * Resolves with the submission when it has ended; with undefined if it does not exist. Rejects after `timeoutMs`.
   */
  async wait(
    id: string,
    { timeoutMs }: { timeoutMs?: number } = {},
  ): Promise<Submission | undefined> {
    let isLate = false;
    let wake: () => void = () => undefined;
    const end = () => {
      isLate = true;
      wake();
    };
    // Node fires a longer timer immediately.
    const timer =
      timeoutMs === undefined ? undefined : setTimeout(end, Math.min(timeoutMs, 2 ** 31 - 1));
    try {
      for (;;) {
        const row = this.#row(id);
        if (row === undefined) return undefined;
        if (row.next_at === null) return toSubmission(row);
        if (isLate) throw new Error(`Submission ${id} has not ended within ${timeoutMs} ms`);
        await new Promise<void>((resolve) => {
          wake = resolve;
          const watchers = this.#watchers.get(id) ?? new Set();
          this.#watchers.set(id, watchers.add(resolve));
        });
        this.#watchers.get(id)?.delete(wake);
      }
    } finally {
      clearTimeout(timer);
    }
  }

  cancel(id: string): CancelOutcome {
    const row = this.#row(id);
    if (row === undefined) return "not_found";
    if (row.next_at === null) return "already_terminal";
    this.#end(id, "aborted", { error: "cancelled" });
    this.#running.get(id)?.abort.abort(new Error("The submission was cancelled"));
    return "cancelled";
  }

  delete(id: string): boolean {
    this.cancel(id);
    const [gone] = this.#agent.database.own(
      "DELETE FROM _trunkline_submissions WHERE id = ? RETURNING id",
      id,
    );
    return gone !== undefined;
  }

  nextAt(): number | undefined {
    const [row] = this.#agent.database.own(
      "SELECT MIN(next_at) AS at FROM _trunkline_submissions WHERE next_at IS NOT NULL",
    );
    return typeof row?.at === "number" ? row.at : undefined;
  }

  begin(): void {
    const rows = this.#agent.database.own(
      "SELECT * FROM _trunkline_submissions WHERE next_at <= ? ORDER BY position LIMIT ?",
      Date.now(),
      2 * AGENT_SUBMISSIONS_RUNNING_MAX,
    );
    for (const row of rows) {
      const id = String(row.id);
      if (this.#running.has(id)) continue;
      if (this.#running.size >= AGENT_SUBMISSIONS_RUNNING_MAX) return;
      const abort = new AbortController();
      const done = this.#run(row, abort.signal).finally(() => {
        this.#running.delete(id);
        this.#agent.due.changed();
      });
      this.#running.set(id, { abort, done });
      this.#agent.background(() => done);
    }
  }

  async settled(): Promise<void> {
    await Promise.all(Array.from(this.#running.values(), ({ done }) => done));
  }

  async #run(row: SqlRow, signal: AbortSignal): Promise<void> {
    await this.#agent.ready();
    const id = String(row.id);
    const attempt = Number(row.attempts) + 1;
    const { database } = this.#agent;
    const [begun] = database.own(
      `UPDATE _trunkline_submissions SET status = 'running', attempts = ?, started_at = ? WHERE id = ? AND next_at IS NOT NULL
      RETURNING id`,
      attempt,
      Date.now(),
      id,
    );
    if (begun === undefined) return;
    // No output leaves before the start of the submission is durable. So the submission has its effects only one
    // time, however this process ends.
    const context: SubmissionContext = {
      submissionId: id,
      ...(row.idempotency_key !== null && { idempotencyKey: String(row.idempotency_key) }),
      attempt,
      signal,
    };
    try {
      const call = this.#agent.call(String(row.method), fromJson(row.payload), context);
      // A cancelled submission frees its place without delay, even if its method ignores the signal.
      const result = await Promise.race([call, aborted(signal)]);
      this.#end(id, "completed", { result: toJson("the result of a submission", result) });
    } catch (error) {
      const retry = readRetry(fromJson(row.retry) as RetryOptions, ONCE);
      if (!signal.aborted && attempt < retry.maxAttempts) {
        const nextAt = Math.ceil(Date.now() + retryDelayMs(retry, attempt));
        database.own(
          "UPDATE _trunkline_submissions SET status = 'pending', next_at = ?, error = ? WHERE id = ? AND next_at IS NOT NULL",
          nextAt,
          String(error),
          id,
        );
        this.#agent.log("warn", error);
      } else {
        this.#end(id, "error", { error: String(error) });
        if (!signal.aborted) await this.#agent.report(error);
      }
      // The signal notifies a method that still runs after its time limit that its result is no longer used.
      this.#running.get(id)?.abort.abort(error);
    }
    this.#agent.gate.flushSoon();
  }

  /** Marks submissions that a previous process had begun. They are attempted again if their options permit it. */
  #interrupt(): void {
    for (const row of this.#agent.database.own(
      "SELECT * FROM _trunkline_submissions WHERE status = 'running'",
    )) {
      const { maxAttempts } = readRetry(fromJson(row.retry) as RetryOptions, ONCE);
      const isOver = Number(row.attempts) >= maxAttempts;
      this.#agent.database.own(
        "UPDATE _trunkline_submissions SET status = 'interrupted', next_at = ?, completed_at = ?, error = ? WHERE id = ?",
        isOver ? null : Date.now(),
        isOver ? Date.now() : null,
        "The process ended in the middle of it",
        String(row.id),
      );
    }
  }

  /** Records the end of a submission. Only the first end counts. */
  #end(
    id: string,
    status: SubmissionStatus,
    what: { result?: string | null; error?: string },
  ): void {
    const { database } = this.#agent;
    const sql = `UPDATE _trunkline_submissions SET status = ?, next_at = NULL, result = ?, error = ?, completed_at = ?
      WHERE id = ? AND next_at IS NOT NULL`;
    const { result = null, error = null } = what;
    const values = [status, result, error, Date.now(), id];
    // The end is recorded even when the result cannot be stored.
    if (result === null) database.own(sql, ...values);
    else database.keep(sql, ...values);
    this.#agent.due.changed();
    const watchers = this.#watchers.get(id) ?? [];
    this.#watchers.delete(id);
    for (const watcher of watchers) watcher();
  }

  #row(id: string): SqlRow | undefined {
    return this.#agent.database.own("SELECT * FROM _trunkline_submissions WHERE id = ?", id)[0];
  }
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const leave = () => reject(signal.reason);
    if (signal.aborted) leave();
    else signal.addEventListener("abort", leave, { once: true });
  });
}

function toSubmission(row: SqlRow): Submission {
  return {
    submissionId: String(row.id),
    ...(row.idempotency_key !== null && { idempotencyKey: String(row.idempotency_key) }),
    method: String(row.method),
    status: row.status as SubmissionStatus,
    attempts: Number(row.attempts),
    ...(row.result !== null && { result: fromJson(row.result) }),
    ...(row.error !== null && { error: String(row.error) }),
    ...(row.metadata !== null && { metadata: fromJson(row.metadata) }),
    createdAt: Number(row.created_at),
    ...(row.started_at !== null && { startedAt: Number(row.started_at) }),
    ...(row.completed_at !== null && { completedAt: Number(row.completed_at) }),
  };
}

/** Scheduled calls of an agent's methods: once, by a cron expression, or at an interval. */

import { randomUUID } from "node:crypto";
import { Cron } from "croner";
import { REMINDER_AT_MAX } from "../../../schemas/limits.ts";
import { readRetry, retryDelayMs } from "../package/retry.ts";
import type { SqlRow } from "../package/sql.ts";
import type {
  RetryOptions,
  Schedule,
  ScheduleCriteria,
  ScheduleOptions,
  ScheduleType,
} from "../package/types.ts";
import type { AgentCore } from "./agent-core.ts";
import type { DuePart } from "./due-work.ts";
import { assertMethod } from "./methods.ts";
import { fromJson, toJson } from "./own-tables.ts";

/** Limit of the interval of `scheduleEvery`. A cron expression may have longer intervals. */
export const AGENT_INTERVAL_S_MAX = 30 * 24 * 3_600;
/** Limit of a delay that `schedule` gets in seconds. */
export const AGENT_DELAY_S_MAX = 100 * 366 * 24 * 3_600;

interface Timing {
  type: ScheduleType;
  at: number;
  /** The seconds of a delay or an interval, or the text of a cron expression. */
  detail: string | number | null;
}

export class Schedules implements DuePart {
  readonly #agent: AgentCore;
  #running: Promise<void> | undefined;
  #runningAt: number | undefined;

  constructor(agent: AgentCore) {
    this.#agent = agent;
  }

  add(
    when: Date | string | number,
    callback: string,
    payload: unknown,
    options: ScheduleOptions = {},
  ): Schedule {
    return this.#add(timingOf(when), callback, payload, options);
  }

  addEvery(
    seconds: number,
    callback: string,
    payload: unknown,
    options: ScheduleOptions = {},
  ): Schedule {
    if (!(seconds > 0 && seconds <= AGENT_INTERVAL_S_MAX)) {
      throw new RangeError(
        `Cannot schedule: intervalSeconds is ${seconds}, expected more than 0 and at most ${AGENT_INTERVAL_S_MAX}`,
      );
    }
    const timing: Timing = { type: "interval", at: Date.now() + seconds * 1000, detail: seconds };
    return this.#add(timing, callback, payload, options);
  }

  cancel(id: string): boolean {
    const [gone] = this.#agent.database.own(
      "DELETE FROM _trunkline_schedules WHERE id = ? RETURNING id",
      id,
    );
    if (gone !== undefined) this.#agent.due.changed();
    return gone !== undefined;
  }

  get(id: string): Schedule | undefined {
    const row = this.#row(id);
    return row === undefined ? undefined : toSchedule(row);
  }

  list({ id, type, timeRange, status = "pending" }: ScheduleCriteria = {}): Schedule[] {
    const rows = this.#agent.database.own(
      "SELECT * FROM _trunkline_schedules ORDER BY at, position",
    );
    const start = timeRange?.start?.getTime() ?? Number.NEGATIVE_INFINITY;
    const end = timeRange?.end?.getTime() ?? Number.POSITIVE_INFINITY;
    return rows
      .filter((row) => Number(row.at) >= start && Number(row.at) <= end)
      .map(toSchedule)
      .filter((schedule) => schedule.status === status)
      .filter((schedule) => id === undefined || schedule.id === id)
      .filter((schedule) => type === undefined || schedule.type === type);
  }

  nextAt(): number | undefined {
    if (this.#runningAt !== undefined) return this.#runningAt;
    const [row] = this.#agent.database.own(
      "SELECT MIN(next_at) AS at FROM _trunkline_schedules WHERE next_at IS NOT NULL",
    );
    return typeof row?.at === "number" ? row.at : undefined;
  }

  begin(): void {
    if (this.#running !== undefined) return;
    this.#running = this.#run().finally(() => {
      this.#running = undefined;
      this.#runningAt = undefined;
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
      const [row] = this.#agent.database.own(
        "SELECT * FROM _trunkline_schedules WHERE next_at <= ? ORDER BY next_at, position LIMIT 1",
        Date.now(),
      );
      if (row === undefined) return;
      this.#runningAt = Number(row.next_at);
      await this.#runOne(row);
    }
  }

  async #runOne(row: SqlRow): Promise<void> {
    const id = String(row.id);
    const attempts = Number(row.attempts) + 1;
    const retry = readRetry(fromJson(row.retry) as RetryOptions);
    const { database } = this.#agent;
    database.own("UPDATE _trunkline_schedules SET attempts = ? WHERE id = ?", attempts, id);
    // The attempt is stored before it begins, because the last attempt may have ended the process.
    await this.#agent.markBegun(Number(row.next_at));
    const schedule = toSchedule({ ...row, attempts });
    try {
      if (attempts > retry.maxAttempts)
        throw new Error("The process ended in the middle of each try");
      await this.#agent.call(schedule.callback, schedule.payload, schedule);
      this.#finish(row);
    } catch (error) {
      if (attempts < retry.maxAttempts) {
        const nextAt = Date.now() + retryDelayMs(retry, attempts);
        database.own(
          "UPDATE _trunkline_schedules SET next_at = ?, error = ? WHERE id = ?",
          Math.ceil(nextAt),
          String(error),
          id,
        );
        this.#agent.log("warn", error);
      } else {
        if (isRepeated(row)) this.#finish(row);
        else
          database.own(
            "UPDATE _trunkline_schedules SET next_at = NULL, error = ? WHERE id = ?",
            String(error),
            id,
          );
        await this.#agent.report(error);
      }
    }
    this.#agent.due.changed();
    this.#agent.gate.flushSoon();
  }

  /** Removes or renews a schedule, unless its method has cancelled or replaced it meanwhile. */
  #finish(row: SqlRow): void {
    const { database } = this.#agent;
    const id = String(row.id);
    if (!isRepeated(row)) {
      database.own("DELETE FROM _trunkline_schedules WHERE id = ?", id);
      return;
    }
    const at = nextOccurrence(row, Date.now());
    if (at === undefined) database.own("DELETE FROM _trunkline_schedules WHERE id = ?", id);
    else {
      database.own(
        "UPDATE _trunkline_schedules SET at = ?, next_at = ?, attempts = 0, error = NULL WHERE id = ?",
        at,
        at,
        id,
      );
    }
  }

  #add(
    { type, at, detail }: Timing,
    callback: string,
    payload: unknown,
    options: ScheduleOptions,
  ): Schedule {
    assertMethod(this.#agent.instance, callback);
    const retry = JSON.stringify(readRetry(options.retry, this.#agent.classOptions.retry));
    const json = toJson("the payload of a schedule", payload);
    const { database } = this.#agent;
    const isIdempotent = options.idempotent ?? (type === "cron" || type === "interval");
    const same = isIdempotent ? this.#same(type, callback, json, detail) : undefined;
    if (same !== undefined) return toSchedule(same);
    const id = randomUUID();
    database.keep(
      `INSERT INTO _trunkline_schedules (id, callback, payload, type, at, detail, retry, next_at)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
      id,
      callback,
      json,
      type,
      Math.ceil(at),
      detail,
      retry,
      Math.ceil(at),
    );
    this.#agent.due.changed();
    return this.get(id) as Schedule;
  }

  #same(
    type: ScheduleType,
    callback: string,
    payload: string | null,
    detail: string | number | null,
  ) {
    // Code that plans a schedule at each start means the existing one, even if its time would now be different.
    const [row] = this.#agent.database.own(
      `SELECT * FROM _trunkline_schedules WHERE type = ? AND callback = ? AND payload IS ?
      AND (type IN ('delayed', 'scheduled') OR detail IS ?) AND next_at IS NOT NULL`,
      type,
      callback,
      payload,
      detail,
    );
    return row;
  }

  #row(id: string): SqlRow | undefined {
    return this.#agent.database.own("SELECT * FROM _trunkline_schedules WHERE id = ?", id)[0];
  }
}

const isRepeated = ({ type }: SqlRow) => type === "cron" || type === "interval";

function timingOf(when: Date | string | number): Timing {
  if (when instanceof Date) {
    if (Number.isNaN(when.getTime())) throw new RangeError("Cannot schedule: the date is invalid");
    if (when.getTime() > REMINDER_AT_MAX) {
      const last = new Date(REMINDER_AT_MAX).toISOString();
      throw new RangeError(
        `Cannot schedule: the date is ${when.toISOString()}, expected one up to ${last}`,
      );
    }
    return { type: "scheduled", at: when.getTime(), detail: null };
  }
  if (typeof when === "number") {
    if (!(when >= 0 && when <= AGENT_DELAY_S_MAX)) {
      throw new RangeError(
        `Cannot schedule: the delay is ${when}, expected seconds from 0 to ${AGENT_DELAY_S_MAX}`,
      );
    }
    return { type: "delayed", at: Date.now() + when * 1000, detail: when };
  }
  if (typeof when !== "string")
    throw new TypeError("Cannot schedule: expected seconds, a Date or a cron expression");
  const at = cronAfter(when, Date.now());
  if (at === undefined) throw new RangeError(`Cannot schedule: "${when}" is never due`);
  return { type: "cron", at, detail: when };
}

/** Returns the next time after now: missed occurrences are not made up for. */
function nextOccurrence(row: SqlRow, now: number): number | undefined {
  if (row.type === "cron") return cronAfter(String(row.detail), now);
  const stepMs = Number(row.detail) * 1000;
  const next = Number(row.at) + stepMs;
  return Math.ceil(next > now ? next : now + stepMs);
}

function cronAfter(expression: string, after: number): number | undefined {
  let cron: Cron;
  try {
    cron = new Cron(expression, { paused: true, timezone: "UTC" });
  } catch (cause) {
    throw new RangeError(
      `Cannot schedule: "${expression}" is no cron expression: ${(cause as Error).message}`,
      { cause },
    );
  }
  const at = cron.nextRun(new Date(after))?.getTime();
  return at !== undefined && at > REMINDER_AT_MAX ? undefined : at;
}

function toSchedule(row: SqlRow): Schedule {
  const type = row.type as ScheduleType;
  return {
    id: String(row.id),
    callback: String(row.callback),
    payload: fromJson(row.payload),
    type,
    time: Math.floor(Number(row.at) / 1000),
    ...(type === "delayed" && { delayInSeconds: Number(row.detail) }),
    ...(type === "cron" && { cron: String(row.detail) }),
    ...(type === "interval" && { intervalSeconds: Number(row.detail) }),
    retry: fromJson(row.retry) as RetryOptions,
    attempts: Number(row.attempts),
    status: row.next_at === null ? "failed" : "pending",
    ...(row.error !== null && { error: String(row.error) }),
  };
}

/** Remembers which tasks were counted, so that a repeated report counts nothing. */
import { hash as digest } from "node:crypto";
import { z } from "zod";
import type { DeepReadonly } from "../../../schemas/contract.ts";
import { TASK_ACK_WAIT_MS, TASK_RUN_MS_MAX, TASK_TRIES_MAX } from "../../../schemas/limits.ts";
import { EpochMs } from "../../../schemas/values.ts";

/**
 * How long a task is remembered. Each try of a task may run for TASK_RUN_MS_MAX, and report again. A limit by number
 * alone would be passed within seconds: a dozen workers count 128 tasks before a lost task is delivered again.
 */
export const COUNTED_MS = TASK_TRIES_MAX * (TASK_RUN_MS_MAX + TASK_ACK_WAIT_MS);
/** Limit of the ids of one row. A report writes one row, so rows are small. */
export const COUNTED_OF_ROW_MAX = 128;
/** Limit of the rows: for 18 tasks a second. The rows then have 400 kB. */
export const COUNTED_ROWS_MAX = 256;

/** `ids` has a space and a hash for each task. */
export const CountedRow = z.object({ lastAt: EpochMs, ids: z.string() });
export type CountedRow = z.infer<typeof CountedRow>;

type Rows = ReadonlyMap<string, DeepReadonly<CountedRow>>;

/** 54 bits, so that the tasks of an account in half an hour have different hashes. */
const HASH_CHARS = 9;
const ROW_CHARS_MAX = COUNTED_OF_ROW_MAX * (1 + HASH_CHARS);

const ROW = "counted/";
const rowOf = (number: number) => `${ROW}${number}`;
const numberOf = (row: string) => Number(row.slice(ROW.length));
const entryOf = (taskId: string) =>
  ` ${digest("sha256", taskId, "base64url").slice(0, HASH_CHARS)}`;

export function isCounted(rows: Rows, taskId: string): boolean {
  const entry = entryOf(taskId);
  return rows.values().some(({ ids }) => ids.includes(entry));
}

/** Returns the changed rows: the last one gets the task, and old rows are removed. */
export function withCounted(rows: Rows, taskId: string, now: number) {
  const numbers = [...rows.keys()].map(numberOf);
  const newest = Math.max(0, ...numbers);
  const last = rows.get(rowOf(newest));
  const goesOn = last !== undefined && last.ids.length < ROW_CHARS_MAX;
  const number = goesOn ? newest : newest + 1;
  const ids = `${goesOn ? last.ids : ""}${entryOf(taskId)}`;
  const isOld = (one: number) =>
    one <= number - COUNTED_ROWS_MAX || (rows.get(rowOf(one))?.lastAt ?? 0) <= now - COUNTED_MS;
  const old = numbers.filter((one) => one !== number && isOld(one));
  return {
    ...Object.fromEntries(old.slice(0, REMOVED_AT_ONCE).map((one) => [rowOf(one), null])),
    [rowOf(number)]: { lastAt: Math.max(now, goesOn ? last.lastAt : 0), ids },
  };
}

/** Returns the removal of old rows, and the time at which the rows that stay are old; no time if none stays. */
export function withoutOld(rows: Rows, now: number) {
  const old = [...rows].filter(([, { lastAt }]) => lastAt <= now - COUNTED_MS);
  const removed = new Set(old.slice(0, REMOVED_AT_ONCE).map(([row]) => row));
  const stay = [...rows].filter(([row]) => !removed.has(row)).map(([, { lastAt }]) => lastAt);
  return {
    rows: Object.fromEntries([...removed].map((row) => [row, null])),
    ...(stay.length > 0 && { oldAt: Math.max(...stay) + COUNTED_MS }),
  };
}

/** A transition may change a limited number of rows. */
const REMOVED_AT_ONCE = 100;

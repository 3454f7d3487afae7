/**
 * Remembers ids for a number of days in rows of an actor. Each row holds a small part of a day's ids, so that adding
 * an id is a small write.
 */
import { hash as digest } from "node:crypto";
import { z } from "zod";

/** A row contains ` <12 characters of a SHA-256>=<number, base 36>` for each id. */
export const RecentIdsRow = z.object({ row: z.literal("ids"), ids: z.string() });
export type RecentIdsRow = z.infer<typeof RecentIdsRow>;

/** Number of ids of each day. Days are numbered from 1970-01-01. */
export const RecentDays = z.array(z.object({ day: z.int(), count: z.int() }));
export type RecentDays = z.infer<typeof RecentDays>;

interface Row {
  row: string;
}
type Rows = ReadonlyMap<string, Readonly<Row>>;
type Days = readonly Readonly<RecentDays[number]>[];

const DAY_MS = 86_400_000;
/** Number of rows per day. With this number, a million ids of one day take 220 kB per row. */
const PARTS = 64;
const HASH_CHARS = 12;

const dayOf = (now: number) => Math.floor(now / DAY_MS);
const rowOf = (day: number, part: number) => `ids/${day}/${part}`;

/** The stored form of an id, computed once for all its uses. */
export interface RecentId {
  hash: string;
  /** The number of the day's row that holds the id. */
  part: number;
}

/** Hashes an id to 72 bits: with a million ids in a log, two have the same hash in one of ten billion logs. */
export function recentId(id: string): RecentId {
  const bytes = digest("sha256", id, "buffer");
  const hash = bytes.subarray(0, (HASH_CHARS * 3) / 4).toString("base64url");
  return { hash, part: (bytes.at(-1) ?? 0) % PARTS };
}

/** Returns the number that was stored with this id, if that was less than `keptMs` ago. Ages count in whole days. */
export function recall(
  { rows, days, now, keptMs }: { rows: Rows; days: Days; now: number; keptMs: number },
  { hash, part }: RecentId,
): number | undefined {
  for (const { day } of days) {
    if (day < dayOf(now - keptMs)) continue;
    const ids = idsOf(rows.get(rowOf(day, part)));
    const at = ids.indexOf(` ${hash}=`);
    if (at === -1) continue;
    const [number = ""] = ids.slice(at + HASH_CHARS + 2).split(" ", 1);
    return Number.parseInt(number, 36);
  }
  return undefined;
}

/** Stores an id with its number. Returns the changed row and the new list of days. */
export function remember(
  { rows, days, now }: { rows: Rows; days: Days; now: number },
  { hash, part }: RecentId,
  number: number,
): { rows: Record<string, RecentIdsRow>; days: RecentDays } {
  // Clocks of hosts differ. If another host has already started a later day, that day is used.
  const last = days.at(-1);
  const day = Math.max(dayOf(now), last?.day ?? 0);
  const row = rowOf(day, part);
  const ids = `${idsOf(rows.get(row))} ${hash}=${number.toString(36)}`;
  const others = last?.day === day ? days.slice(0, -1) : days;
  const count = (last?.day === day ? last.count : 0) + 1;
  return { rows: { [row]: { row: "ids", ids } }, days: [...others, { day, count }] };
}

/** Deletes the rows of expired days, and of the oldest days (never the last day) while there are too many ids. */
export function forgetOld(
  { rows, days, now }: { rows: Rows; days: Days; now: number },
  { keptMs, idsMax }: { keptMs: number; idsMax: number },
): { rows: Record<string, null>; days: RecentDays } {
  let total = days.reduce((sum, { count }) => sum + count, 0);
  const kept = [...days];
  const gone: number[] = [];
  for (const { day, count } of days) {
    const isLast = kept.length === 1;
    if (day >= dayOf(now - keptMs) && (total <= idsMax || isLast)) break;
    gone.push(day);
    kept.shift();
    total -= count;
  }
  const names = gone.flatMap((day) => Array.from({ length: PARTS }, (_, part) => rowOf(day, part)));
  const there = names.filter((name) => rows.has(name));
  return { rows: Object.fromEntries(there.map((name) => [name, null])), days: kept };
}

function idsOf(row: Readonly<Row> | undefined): string {
  return row && "ids" in row && typeof row.ids === "string" ? row.ids : "";
}

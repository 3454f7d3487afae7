/**
 * Remembers ids for a number of days in rows of an actor. Each row holds a small part of the ids of a generation, so
 * that adding an id is a small write. A day has one generation, or several if it has many ids.
 */
import { hash as digest } from "node:crypto";
import { z } from "zod";
import { EVENT_IDS_MAX } from "../../../../schemas/apps/limits.ts";

/** A row contains ` <12 characters of a SHA-256>=<number, base 36>` for each id. */
export const RecentIdsRow = z.object({ row: z.literal("ids"), ids: z.string() });
export type RecentIdsRow = z.infer<typeof RecentIdsRow>;

/**
 * Number of ids of each generation, oldest first. Days are numbered from 1970-01-01. The first generation of a day has
 * no number, the next one is 1. Earlier versions stored one generation of each day, whatever its size.
 */
export const RecentDays = z.array(
  z.object({ day: z.int(), generation: z.int().min(1).optional(), count: z.int() }),
);
export type RecentDays = z.infer<typeof RecentDays>;

interface Row {
  row: string;
}
type Rows = ReadonlyMap<string, Readonly<Row>>;
type Generation = Readonly<RecentDays[number]>;
type Days = readonly Generation[];

const DAY_MS = 86_400_000;
/** Number of rows of a generation. */
const PARTS = 64;
const HASH_CHARS = 12;
/** Number of ids of a generation. Each row then has about 20 kB. */
export const GENERATION_IDS_MAX = 65_536;
/**
 * Length of a row past which a generation ends early. Only a sender that chooses ids by their hashes can fill one row
 * so much more than the others.
 */
export const IDS_ROW_CHARS_MAX = 64_000;
/** Generations whose rows one call deletes, because one transition may change 500 rows. */
const GENERATIONS_FORGOTTEN_AT_ONCE = 4;

/** Bytes of a remembered id, about. */
const ID_BYTES = 20;

/** Returns the bytes of all remembered ids, about. */
export const bytesOfIds = (days: Days): number =>
  days.reduce((sum, { count }) => sum + count * ID_BYTES, 0);

const dayOf = (now: number) => Math.floor(now / DAY_MS);
const rowOf = ({ day, generation }: Omit<Generation, "count">, part: number) =>
  generation === undefined ? `ids/${day}/${part}` : `ids/${day}.${generation}/${part}`;

/** The stored form of an id, computed once for all its uses. */
export interface RecentId {
  hash: string;
  /** The number of the row, among those of a generation, that holds the id. */
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
  for (const generation of days) {
    if (generation.day < dayOf(now - keptMs)) continue;
    const ids = idsOf(rows.get(rowOf(generation, part)));
    const at = ids.indexOf(` ${hash}=`);
    if (at === -1) continue;
    const [number = ""] = ids.slice(at + HASH_CHARS + 2).split(" ", 1);
    return Number.parseInt(number, 36);
  }
  return undefined;
}

/**
 * Stores an id with its number. Returns the changed rows and the new list of generations. When a generation begins and
 * there are too many ids, the oldest generation is deleted.
 */
export function remember(
  { rows, days, now }: { rows: Rows; days: Days; now: number },
  id: RecentId,
  number: number,
): { rows: Record<string, RecentIdsRow | null>; days: RecentDays } {
  const last = days.at(-1);
  const current = generationFor({ rows, last, now }, id);
  const row = rowOf(current, id.part);
  const ids = `${idsOf(rows.get(row))} ${id.hash}=${number.toString(36)}`;
  const written: Record<string, RecentIdsRow> = { [row]: { row: "ids", ids } };
  const counted = { ...current, count: current.count + 1 };
  if (current === last) return { rows: written, days: [...days.slice(0, -1), counted] };
  const old = oldest({ rows, days: [...days, counted] }, (_, total) => total > EVENT_IDS_MAX, 1);
  return { rows: { ...old.rows, ...written }, days: old.days };
}

/** Returns the generation for a new id: the last one, or a new one. */
function generationFor(
  { rows, last, now }: { rows: Rows; last: Generation | undefined; now: number },
  { part }: RecentId,
): Generation {
  // Clocks of hosts differ. If another host has already started a later day, that day is used.
  const day = Math.max(dayOf(now), last?.day ?? 0);
  if (last?.day !== day) return { day, count: 0 };
  const isFull =
    last.count >= GENERATION_IDS_MAX ||
    idsOf(rows.get(rowOf(last, part))).length > IDS_ROW_CHARS_MAX;
  return isFull ? { day, generation: (last.generation ?? 0) + 1, count: 0 } : last;
}

/**
 * Deletes the rows of expired days, and of the oldest generations (never the last one) while there are too many ids.
 * `hasMore`: there were too many rows to delete at once.
 */
export function forgetOld(
  { rows, days, now }: { rows: Rows; days: Days; now: number },
  { keptMs, idsMax }: { keptMs: number; idsMax: number },
): { rows: Record<string, null>; days: RecentDays; hasMore: boolean } {
  const isDeletable = ({ day }: Generation, total: number, isLast: boolean) =>
    day < dayOf(now - keptMs) || (total > idsMax && !isLast);
  const old = oldest({ rows, days }, isDeletable, GENERATIONS_FORGOTTEN_AT_ONCE);
  const left = oldest({ rows, days: old.days }, isDeletable, 1);
  return { ...old, hasMore: left.days.length < old.days.length };
}

/** Deletes the oldest generations while `isDeletable` is true for them and the number of ids. */
function oldest(
  { rows, days }: { rows: Rows; days: Days },
  isDeletable: (generation: Generation, total: number, isLast: boolean) => boolean,
  atOnce: number,
): { rows: Record<string, null>; days: RecentDays } {
  let total = days.reduce((sum, { count }) => sum + count, 0);
  let gone = 0;
  for (const generation of days) {
    if (gone === atOnce || !isDeletable(generation, total, gone === days.length - 1)) break;
    total -= generation.count;
    gone += 1;
  }
  const names = days
    .slice(0, gone)
    .flatMap((generation) => Array.from({ length: PARTS }, (_, part) => rowOf(generation, part)));
  const there = names.filter((name) => rows.has(name));
  return { rows: Object.fromEntries(there.map((name) => [name, null])), days: days.slice(gone) };
}

function idsOf(row: Readonly<Row> | undefined): string {
  return row && "ids" in row && typeof row.ids === "string" ? row.ids : "";
}

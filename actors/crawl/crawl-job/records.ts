/**
 * Lists the records of a job. A listing of all records is in discovery order. A listing by status shows each record
 * exactly once, even while pages settle.
 */

import { strict as assert } from "node:assert";
import type { z } from "zod";
import type { DeepReadonly } from "../../../schemas/contract.ts";
import type {
  CrawlSummary,
  crawlJob,
  RecordEntry,
  RecordStatus,
} from "../../../schemas/crawl/crawl-job.ts";
import { LETTERS_PER_ROW } from "../../../schemas/crawl/limits.ts";
import { ActorError } from "../../../schemas/errors.ts";
import type { PageRow } from "./state/crawl-job-state.ts";
import { hostOfUrl } from "./state/host-queues.ts";
import type { JobDraft } from "./state/job-draft.ts";
import { addressOf } from "./state/page-address.ts";
import { pageOf } from "./state/page-rows.ts";
import { finishedPages, LETTERS, lettersRow, UNSETTLED } from "./state/pages.ts";
import { readShown } from "./state/settled-record.ts";

/**
 * Maximum bytes of the entries in one reply, unless the first entry alone is larger. The rest of the message fits
 * below MESSAGE_BYTES_MAX.
 */
export const RECORD_LIST_BYTES_MAX = 800_000;

type Page = DeepReadonly<PageRow>;
type Query = z.output<typeof crawlJob.messages.list.input>;

/**
 * The position of a listing: it continues behind the record `index`, among records whose settlement number is above
 * `after` and at most `upTo`.
 */
interface Position {
  index: number;
  after: number;
  upTo: number;
}

interface Listed {
  entries: { entry: RecordEntry; cursor: string }[];
  more: boolean;
}

export function summaryOf({ state }: JobDraft): CrawlSummary {
  const { status, browserMs, total, skipped, createdAt, endedAt, messages } = state;
  assert(status !== "unknown", "Only a started job has a summary");
  const finished = finishedPages(state);
  const times = endedAt === undefined ? { createdAt } : { createdAt, endedAt };
  return { status, browserMs, total, finished, skipped, ...times, messages: [...messages] };
}

/**
 * Lists records after the cursor. A settled record never changes, unless it was skipped for its depth. A listing by a
 * status other than `queued` first shows the records that were settled when the listing began, in discovery order.
 * Then it shows the records that were settled since, and so on. So none is missing or repeated while pages settle.
 */
export function listRecords(draft: JobDraft, { status, cursor, count }: Query): Listed {
  const { state } = draft;
  const byEnd = status !== undefined && status !== "queued";
  const everything = { index: -1, after: -1, upTo: Number.MAX_SAFE_INTEGER };
  const first = byEnd ? { index: -1, after: -1, upTo: state.settled } : everything;
  const position = cursor === undefined ? first : readCursor(cursor, byEnd, state.records);
  const listed: Listed = { entries: [], more: false };
  let bytes = 0;
  for (const place of walk(draft, status, position)) {
    const entry = entryOf(draft, place.index);
    bytes += Buffer.byteLength(JSON.stringify(entry));
    const isFull = listed.entries.length >= count || bytes > RECORD_LIST_BYTES_MAX;
    if (isFull && listed.entries.length > 0) return { ...listed, more: true };
    listed.entries.push({ entry, cursor: writeCursor(place, byEnd) });
  }
  return listed;
}

function* walk(
  draft: JobDraft,
  status: RecordStatus | undefined,
  start: Position,
): Generator<Position> {
  const { settled } = draft.state;
  const letters = lettersOf(draft, status);
  for (let { index, after, upTo } = start; ; index = -1, after = upTo, upTo = settled) {
    for (const found of matching(draft, letters, index, after)) {
      const number = pageOf(draft, found).settledAs ?? settled;
      const isNow = upTo === Number.MAX_SAFE_INTEGER || (number > after && number <= upTo);
      if (isNow) yield { index: found, after, upTo };
    }
    if (upTo >= settled) return;
  }
}

/**
 * Yields the indexes of records with a wanted status letter. While the job runs, skips rows in which no record was
 * settled after settlement number `after`.
 */
function* matching(
  draft: JobDraft,
  wanted: string | undefined,
  behind: number,
  after: number,
): Generator<number> {
  const { records, endedAt } = draft.state;
  for (let index = behind + 1; index < records; ) {
    const start = index - (index % LETTERS_PER_ROW);
    const { letters, settledAs } = draft.getRow("letters", lettersRow(index));
    const isOld = settledAs <= after && endedAt === undefined;
    for (; !isOld && index - start < letters.length; index += 1) {
      if (wanted === undefined || wanted.includes(letters[index - start] ?? "")) yield index;
    }
    index = start + LETTERS_PER_ROW;
  }
}

/**
 * Returns the letters of a status. All unsettled records have the letter `q`; the status of the job decides the
 * status that they are listed with.
 */
function lettersOf(draft: JobDraft, status: RecordStatus | undefined): string | undefined {
  if (status === undefined) return undefined;
  const own = status in LETTERS ? LETTERS[status as keyof typeof LETTERS] : "";
  return unsettledStatus(draft) === status ? own + UNSETTLED : own;
}

function unsettledStatus({ state }: JobDraft): "queued" | "disallowed" | "cancelled" {
  if (state.endedAt === undefined) return "queued";
  return state.refusal === undefined ? "cancelled" : "disallowed";
}

/** Returns a record without the contents of its blobs. */
export function entryOf(draft: JobDraft, index: number): RecordEntry {
  const page = pageOf(draft, index);
  const { url, status } = page;
  if (status === "queued" || status === "in_flight" || status === "extracting") {
    const unsettled = { index, url, status: unsettledStatus(draft) };
    const reason = whyUnsettled(draft, page);
    const hasEnded = draft.state.endedAt !== undefined;
    if (status !== "extracting" || !hasEnded) return { ...unsettled, reason, blobs: [] };
    // The page was fetched, so its reader gets all but the JSON, which nobody makes any more.
    const { metadata, blobs = [] } = page;
    return {
      ...{ ...unsettled, reason: `its JSON was not made: ${reason}`, blobs: [...blobs] },
      ...(metadata && { metadata }),
    };
  }
  const { reason, metadata, blobs = [] } = readShown({ job: draft.key, index, page });
  const known = { ...(reason && { reason }), ...(metadata && { metadata }) };
  return { index, url, status, ...known, blobs: [...blobs] };
}

function whyUnsettled({ state }: JobDraft, page: Page): string {
  if (state.refusal !== undefined) return state.refusal;
  switch (state.status) {
    case "cancelled_by_user":
      return "the crawl was cancelled";
    case "cancelled_due_to_timeout":
      return "the crawl took longer than it may";
    case "cancelled_due_to_limits":
      if (state.stored?.isFull) return "the account's crawls stored as much as they may";
      return "the account had no browser time left";
    case "errored":
      return "the crawl ended with an error";
    default:
  }
  if (page.status === "extracting") return "its JSON is being made";
  if (page.status === "in_flight") return "it is being fetched";
  return `it waits for a turn at ${hostOfUrl(addressOf(page))}`;
}

const writeCursor = ({ index, after, upTo }: Position, byEnd: boolean) =>
  byEnd ? `${index}.${after + 1}.${upTo}` : `${index}`;

function readCursor(cursor: string, byEnd: boolean, records: number): Position {
  const [, index, after, upTo] = /^(\d{1,9})(?:\.(\d{1,9})\.(\d{1,9}))?$/.exec(cursor) ?? [];
  const isOfRecord = index !== undefined && Number(index) < records;
  if (!isOfRecord || (upTo !== undefined) !== byEnd) {
    const message = "Cannot list records: the cursor belongs to a listing with another status";
    throw new ActorError("invalid_request", message);
  }
  if (upTo === undefined) return { index: Number(index), after: -1, upTo: Number.MAX_SAFE_INTEGER };
  return { index: Number(index), after: Number(after) - 1, upTo: Number(upTo) };
}

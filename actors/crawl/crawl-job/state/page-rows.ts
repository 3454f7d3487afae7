/**
 * The rows that hold the records of a job: PAGES_PER_ROW records in one row, a line of text each. The pages of one
 * turn are mostly neighbours, so one stored row serves several of them. With a row for each record, a crawl stored
 * four times as many rows. The stored lines are one text (packed-rows.ts).
 */
import { strict as assert } from "node:assert";
import type { DeepReadonly } from "../../../../schemas/contract.ts";
import { type CrawlJobRow, PageRow } from "./crawl-job-state.ts";
import type { JobDraft } from "./job-draft.ts";
import { linesOfRow } from "./packed-rows.ts";

/** A part of the stored format: the row of a record is its index divided by this number. */
export const PAGES_PER_ROW = 8;
/**
 * Bytes of a line in the JSON of its row; most lines have 100 to 400. A record with a longer line gets a row of its
 * own, because each change of a record writes the lines of its neighbours too. The 256 pages of one turn may be in as
 * many rows, and all of these must fit TRANSITION_ROW_BYTES_MAX.
 */
export const PAGE_LINE_BYTES_MAX = 600;

type Page = DeepReadonly<PageRow>;
type Rows = Pick<JobDraft, "row">;

const groupRow = (index: number) => `g/${Math.floor(index / PAGES_PER_ROW)}`;
/** The row of a record with a long line, and of each record of a job that an earlier release started. */
const ownRow = (index: number) => `p/${index}`;

export function pageOf(rows: Rows, index: number): Page {
  const page = findPage(rows, index);
  assert(page, `Record ${index} exists`);
  return page;
}

export function findPage(rows: Rows, index: number): Page | undefined {
  const place = index % PAGES_PER_ROW;
  const line = linesOfRow(rows.row(groupRow(index)), place + 1)?.[place];
  return line ? readLine(line) : ownPage(rows, index);
}

/** Writes a record. A new record must have the index behind the last one. */
export function writePage(draft: JobDraft, index: number, page: Page): void {
  const lines = linesOfRow(draft.row(groupRow(index)));
  if (lines === undefined && hasNoGroups(draft)) {
    draft.write(ownRow(index), page);
    return;
  }
  const name = groupRow(index);
  const before = lines ?? [];
  // The first change of a row costs the bytes of all its lines.
  if (!draft.hasWritten(name)) spendNeighbours(draft, before);
  const place = index % PAGES_PER_ROW;
  const line = writeLine(page);
  const isLong = Buffer.byteLength(JSON.stringify(line)) > PAGE_LINE_BYTES_MAX;
  const wasLong = before[place] === "";
  if (isLong) draft.write(ownRow(index), page);
  else if (wasLong) draft.write(ownRow(index), null);
  if (isLong && wasLong) return;
  const after = [...before];
  after[place] = isLong ? "" : line;
  draft.write(name, { type: "pages", lines: after });
}

/** Whether an earlier release started the job. All its records have rows of their own then. */
const hasNoGroups = (rows: Rows) =>
  rows.row(groupRow(0)) === undefined && ownPage(rows, 0) !== undefined;

function ownPage(rows: Rows, index: number): Page | undefined {
  const row: DeepReadonly<CrawlJobRow> | undefined = rows.row(ownRow(index));
  return row?.type === "page" ? row : undefined;
}

function spendNeighbours(draft: JobDraft, lines: readonly string[]): void {
  draft.spend({ bytes: lines.reduce((sum, line) => sum + line.length, 0), work: 0 });
}

/**
 * Writes the fields that most records have, separated by tabs: no address has tabs, and JSON escapes them. `shown` is
 * JSON already. The last field is the JSON of all other fields. Missing fields at the end have no tabs. They are not
 * trimmed from a longer text, because V8 would keep the longer text too.
 */
function writeLine(page: Page): string {
  const { type: _type, url, depth, status, next, settledAs, shown, ...others } = page;
  const more = JSON.stringify(others);
  const fields = [url, depth, status, next, settledAs, shown, more === "{}" ? undefined : more];
  return fields.slice(0, fields.findLastIndex((field) => field !== undefined) + 1).join("\t");
}

function readLine(line: string): Page {
  const [url = "", depth, status, next, settledAs, shown, more] = line.split("\t");
  return {
    ...(more && OtherFields.parse(JSON.parse(more))),
    type: "page",
    url,
    depth: Number(depth),
    status: PageRow.shape.status.parse(status),
    ...(next && { next: Number(next) }),
    ...(settledAs && { settledAs: Number(settledAs) }),
    ...(shown && { shown }),
  };
}

const OtherFields = PageRow.omit({
  ...{ type: true, url: true, depth: true, status: true },
  ...{ next: true, settledAs: true, shown: true },
});

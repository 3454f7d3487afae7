/** The records of a job: rows by index, a status letter each for listings, and the counts. */
import type { DeepReadonly } from "../../../../schemas/contract.ts";
import type { RecordStatus } from "../../../../schemas/crawl/crawl-job.ts";
import { LETTERS_PER_ROW } from "../../../../schemas/crawl/limits.ts";
import type { PageRow } from "./crawl-job-state.ts";
import type { JobDraft } from "./job-draft.ts";
import { pageOf, writePage } from "./page-rows.ts";
import { type Shown, writeShown } from "./settled-record.ts";

/** Minimum of `spareRecords`. A job with a higher page limit uses its page limit instead. */
export const RECORDS_SPARE_MIN = 1_000;

type Page = DeepReadonly<PageRow>;
type FinalStatus = Extract<RecordStatus, "completed" | "errored" | "disallowed" | "skipped">;

/**
 * The letter of each status. An unsettled record has `q`: it is queued, or after the end of the job cancelled or
 * disallowed.
 */
export const LETTERS = {
  completed: "c",
  errored: "e",
  disallowed: "d",
  skipped: "s",
} as const satisfies Record<FinalStatus, string>;
export const UNSETTLED = "q";

export const lettersRow = (index: number) => `z/${Math.floor(index / LETTERS_PER_ROW)}`;

/**
 * Maximum number of records beyond the page limit, for each of three sorts: skipped addresses, admitted pages that
 * were skipped later, and disallowed pages.
 */
const spareRecords = (draft: JobDraft): number =>
  Math.max(RECORDS_SPARE_MIN, draft.plan.plan.limit);

/** Adds a page to fetch and returns its index. The caller must put it into its host's queue. */
export function addPage(draft: JobDraft, page: { url: string; depth: number }): number {
  const index = addRecord(draft, { type: "page", ...page, status: "in_flight" });
  const { state } = draft;
  state.admitted += 1;
  state.total += 1;
  state.inFlight += 1;
  return index;
}

/**
 * Counts a skipped address, and adds a record for it unless too many are kept. Returns the record's index if it was
 * added.
 */
export function addSkipped(
  draft: JobDraft,
  page: Pick<Page, "url" | "depth" | "reason" | "tooDeep">,
): number | undefined {
  const { state } = draft;
  state.skipped += 1;
  if (state.skippedKept >= spareRecords(draft)) return undefined;
  state.skippedKept += 1;
  state.settled += 1;
  const settledAs = state.settled;
  const index = addRecord(draft, { type: "page", ...page, status: "skipped", settledAs });
  draft.settled.push(index);
  return index;
}

/** Turns a skipped record into a page to fetch. The caller must put it into its host's queue. */
export function unskip(draft: JobDraft, index: number, depth: number): void {
  const { state } = draft;
  const { reason: _reason, settledAs: _number, tooDeep: _tooDeep, ...page } = pageOf(draft, index);
  writePage(draft, index, { ...page, depth, status: "in_flight" });
  setLetter(draft, index, UNSETTLED, 0);
  state.skipped -= 1;
  state.skippedKept -= 1;
  state.admitted += 1;
  state.total += 1;
  state.inFlight += 1;
}

/** Settles a page in flight. */
export function settlePage(
  draft: JobDraft,
  index: number,
  page: Page,
  outcome: Shown & { status: FinalStatus },
): void {
  const { state } = draft;
  const { next: _next, alone: _alone, reason, metadata, blobs, ...kept } = page;
  draft.settled.push(index);
  state.inFlight -= 1;
  state.settled += 1;
  // A skipped or disallowed page stops counting against the page limit, so that another page can replace it. The
  // number of such pages is bounded: a site may disallow or redirect everything that its pages link to.
  if (outcome.status === "skipped") {
    state.total -= 1;
    state.skipped += 1;
    state.skippedLate = (state.skippedLate ?? 0) + 1;
    if (state.skippedLate <= spareRecords(draft)) state.admitted -= 1;
  } else state.finished += 1;
  if (outcome.status === "disallowed") {
    state.disallowed += 1;
    if (state.disallowed <= spareRecords(draft)) state.admitted -= 1;
  }
  const { status, ...shown } = outcome;
  const place = { job: draft.key, index, page };
  writePage(draft, index, {
    ...kept,
    ...{ status, settledAs: state.settled },
    shown: writeShown(place, { reason, metadata, blobs, ...shown }),
  });
  setLetter(draft, index, LETTERS[outcome.status], state.settled);
}

/** Returns the number of finished pages. A refusal by content signal finishes every page: all are disallowed. */
export const finishedPages = ({ refusal, finished, total }: JobDraft["state"]): number =>
  refusal === undefined ? finished : total;

function addRecord(draft: JobDraft, page: Page): number {
  const { state } = draft;
  const index = state.records;
  state.records += 1;
  writePage(draft, index, page);
  const letter = page.status === "skipped" ? LETTERS.skipped : UNSETTLED;
  setLetter(draft, index, letter, page.settledAs ?? 0);
  return index;
}

function setLetter(draft: JobDraft, index: number, letter: string, settledAs: number): void {
  const name = lettersRow(index);
  const { letters = "", settledAs: latest = 0 } = draft.findRow("letters", name) ?? {};
  const at = index % LETTERS_PER_ROW;
  draft.write(name, {
    type: "letters",
    letters: letters.slice(0, at) + letter + letters.slice(at + 1),
    settledAs: Math.max(latest, settledAs),
  });
}

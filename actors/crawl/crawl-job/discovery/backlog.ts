/** The backlog of found addresses. One message examines a bounded number, the next one continues. */

import type { DeepReadonly } from "../../../../schemas/contract.ts";
import { envelope } from "../../../../schemas/contract.ts";
import { crawlJob } from "../../../../schemas/crawl/crawl-job.ts";
import type { Found } from "../state/crawl-job-state.ts";
import type { JobDraft } from "../state/job-draft.ts";
import { addMessage } from "../state/job-messages.ts";
import { waitingOfRow } from "../state/packed-rows.ts";
import { pageOf } from "../state/page-rows.ts";
import { admit, type Lane } from "./frontier.ts";
import { sitemapsAreAwaited } from "./sitemaps.ts";

/**
 * A backlog row takes addresses until they have this many characters. The second number is the maximum rows of a
 * lane.
 */
export const BACKLOG_ROW_CHARS_MAX = 50_000;
export const BACKLOG_ROWS_MAX = 1_000;
/**
 * Maximum rows per lane while the job is at its page limit. If a page turns out to be disallowed, an address of these
 * rows can replace it.
 */
export const BACKLOG_SPARE_ROWS_MAX = 16;
/** When a lane has this many rows, its addresses no longer wait for the start URL or for sitemaps. */
export const BACKLOG_HELD_ROWS_MAX = 64;

type FoundList = readonly DeepReadonly<Found>[];

/** The lanes in the order of their examination. */
const LANES: readonly Lane[] = ["files", "sitemap", "links"];

/** Examines found addresses, or appends them to the backlog of their lane. */
export function discover(draft: JobDraft, lane: Lane, depth: number, found: FoundList): void {
  const mayNow = backlogRows(draft, lane) === 0 && !isHeld(draft, lane);
  const rest = mayNow ? admit(draft, lane, depth, found) : found;
  keep(draft, lane, depth, rest);
}

/** Examines the backlog as far as one message may. */
export function admitFromBacklog(draft: JobDraft): void {
  for (const lane of LANES) {
    while (isReady(draft, lane) && !draft.isFull) admitFirstRow(draft, lane);
  }
}

/** Makes the job send itself one message if a lane of the backlog may be examined further now. */
export function askForMore(draft: JobDraft): void {
  const { backlog } = draft.state;
  if (backlog.asked || !LANES.some((lane) => isReady(draft, lane))) return;
  draft.state.backlog = { ...backlog, asked: true };
  draft.send(envelope(crawlJob, draft.key, "admitMore", {}));
}

export const backlogIsEmpty = (draft: JobDraft) =>
  LANES.every((lane) => backlogRows(draft, lane) === 0);

function admitFirstRow(draft: JobDraft, lane: Lane): void {
  const { backlog } = draft.state;
  const { first, next } = backlog[lane];
  const name = `b/${lane}/${first}`;
  const { depth, found } = waitingOfRow(draft.row(name));
  const rest = admit(draft, lane, depth, found);
  if (rest.length > 0) {
    draft.write(name, { type: "backlog", depth, found: rest });
    return;
  }
  draft.write(name, null);
  draft.state.backlog = { ...backlog, [lane]: { first: first + 1, next } };
}

function keep(draft: JobDraft, lane: Lane, depth: number, found: FoundList): void {
  for (let start = 0; start < found.length; ) {
    const rows = backlogRows(draft, lane);
    if (rows >= rowsMax(draft)) {
      // At the page limit a crawl almost always has further links, so the user needs no message about them.
      if (draft.pagesLeft > 0) addMessage(draft, LEFT_OUT);
      return;
    }
    let end = start;
    for (let chars = 0; end < found.length && chars < BACKLOG_ROW_CHARS_MAX; end += 1) {
      chars += found[end]?.url.length ?? 0;
    }
    const { backlog } = draft.state;
    const { first, next } = backlog[lane];
    const slice = found.slice(start, end);
    draft.write(`b/${lane}/${next}`, { type: "backlog", depth, found: slice });
    draft.state.backlog = { ...backlog, [lane]: { first, next: next + 1 } };
    start = end;
  }
}

const LEFT_OUT = "More links came at once than the crawl could look at; some were left out";

const rowsMax = ({ pagesLeft }: JobDraft) =>
  pagesLeft > 0 ? BACKLOG_ROWS_MAX : BACKLOG_SPARE_ROWS_MAX;

const isReady = (draft: JobDraft, lane: Lane) =>
  backlogRows(draft, lane) > 0 && draft.pagesLeft > 0 && !isHeld(draft, lane);

/**
 * Whether the addresses of a lane must wait. Pages wait for the response to the start URL, which decides the home of
 * the crawl. Links also wait for the pages of sitemaps. A lane with BACKLOG_HELD_ROWS_MAX rows no longer waits.
 */
function isHeld(draft: JobDraft, lane: Lane): boolean {
  if (lane === "files" || backlogRows(draft, lane) >= BACKLOG_HELD_ROWS_MAX) return false;
  const { status } = pageOf(draft, 0);
  if (status === "queued" || status === "in_flight") return true;
  return lane === "links" && (backlogRows(draft, "sitemap") > 0 || sitemapsAreAwaited(draft));
}

function backlogRows({ state }: JobDraft, lane: Lane): number {
  const { first, next } = state.backlog[lane];
  return next - first;
}

/** Keeps the list of an account's crawl jobs, and limits their number and the bytes that they store. */
import { type DeepReadonly, envelope } from "../../../schemas/contract.ts";
import { crawlJob } from "../../../schemas/crawl/crawl-job.ts";
import { crawlList } from "../../../schemas/crawl/crawl-list.ts";
import {
  CRAWL_KEPT_MS,
  CRAWLS_KEPT_MAX,
  CRAWLS_RUNNING_MAX,
} from "../../../schemas/crawl/limits.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { defineActor } from "../../runtime/kinds/define-actor.ts";
import { CrawlListRow, CrawlListState } from "./crawl-list-state.ts";
import { shareHosts } from "./host-shares.ts";

/**
 * Time after which an admitted crawl that has not started no longer counts as running: it will not start any more.
 */
export const CRAWL_ADMITTED_MS = 60_000;
const DAY_MS = 86_400_000;

/**
 * Stored at: account id
 *
 * State: `{ next, running, kept, admitted: [epoch ms], bytes?, bytesMax? }`; `next` numbers the jobs; admitted ones
 * that have not started count as running for a minute; `bytes` is the sum of the rows, and `bytesMax` the limit at the
 * latest start. A row for each job, by its id: `{ id, url, status, createdAt, endedAt?, total?, finished?, skipped?,
 * number, bytes?, requestBytes?, hostsMax? }`, until its results expire; the counts are those of the end; `bytes` are
 * those of its results in `CRAWL` as last reported, `requestBytes` those of its request while it runs, and `hostsMax` its
 * share of hosts while it runs
 */
export const crawlListActor = defineActor(crawlList, {
  state: CrawlListState,
  rows: CrawlListRow,
  initial: { next: 0, running: 0, kept: 0, admitted: [] },

  handlers: {
    admit(state, { bytesMax = state.bytesMax }, { now, rows }) {
      const admitted = state.admitted.filter((at) => now < at + CRAWL_ADMITTED_MS);
      const running = state.running + admitted.length;
      if (running >= CRAWLS_RUNNING_MAX) {
        throw limitReached(`${running} of the account's run, which is the limit`);
      }
      const kept = state.kept + admitted.length;
      if (kept >= CRAWLS_KEPT_MAX) {
        throw limitReached(`${kept} of the account's are kept, which is the limit`);
      }
      const limited = { ...state, ...(bytesMax !== undefined && { bytesMax }) };
      if (bytesMax && storedBytes(state, rows) >= bytesMax) {
        const text = `Cannot start crawl: ${whyFull(limited, rows.values())}`;
        throw new ActorError("storage_full", text);
      }
      return { state: { ...limited, admitted: [...admitted, now] }, reply: {} };
    },

    started(state, { id, url, createdAt, requestBytes }, { now, rows }) {
      if (rows.has(id)) return { state };
      const { next, running, kept } = state;
      const at = createdAt ?? now;
      const row = {
        ...{ id, url, status: "running" as const, createdAt: at, number: next },
        ...(requestBytes !== undefined && { requestBytes }),
      };
      const [, ...admitted] = state.admitted;
      const counted = { ...state, next: next + 1, running: running + 1, kept: kept + 1, admitted };
      const shares = shareHosts([...rows.values(), row]);
      return {
        state: { ...counted, ...sumOf(state, rows, { after: row }) },
        rows: { [id]: row, ...shares.rows },
        send: shares.send,
      };
    },

    grown(state, { id, bytes }, { rows }) {
      const row = rows.get(id);
      // Changes nothing for an expired job, or if a later message has reported more.
      if (row === undefined || bytes <= (row.bytes ?? 0)) return { state };
      const grown = { ...row, bytes };
      const next = { ...state, ...sumOf(state, rows, { before: row, after: grown }) };
      const { bytesMax = 0 } = state;
      const isFull = row.status === "running" && bytesMax > 0 && next.bytes > bytesMax;
      // Only the job that has grown ends. The others may store at most one more step each.
      const reason = isFull && `The crawl was stopped: ${whyFull(next, rows.values())}`;
      return {
        state: next,
        rows: { [id]: grown },
        ...(reason && { send: [envelope(crawlJob, id, "accountFull", { reason })] }),
      };
    },

    ended(state, { id, status, endedAt, ...counts }, { now, rows }) {
      const row = rows.get(id);
      // Changes nothing for a job that has ended already, or that has expired and so has no row.
      if (row?.status !== "running" || status === "running") return { state };
      const { requestBytes, hostsMax, ...kept } = row;
      // A host of an earlier version forgets what the job has stored so far.
      const bytes = Math.max(row.bytes ?? 0, counts.bytes ?? 0);
      const stored = row.bytes === undefined && counts.bytes === undefined ? {} : { bytes };
      const ended = { ...kept, ...counts, ...stored, status, endedAt: endedAt ?? now };
      const sum = sumOf(state, rows, { before: row, after: ended });
      const shares = shareHosts(withoutRow(rows, id));
      return {
        state: { ...state, running: state.running - 1, ...sum },
        rows: { [id]: ended, ...shares.rows },
        send: shares.send,
      };
    },

    expired(state, { id }, { rows }) {
      const row = rows.get(id);
      if (row === undefined) return { state };
      const running = state.running - (row.status === "running" ? 1 : 0);
      const counted = { ...state, running, kept: state.kept - 1 };
      const shares = shareHosts(withoutRow(rows, id));
      return {
        state: { ...counted, ...sumOf(state, rows, { before: row }) },
        rows: { [id]: null, ...shares.rows },
        send: shares.send,
      };
    },

    list(state, { cursor, status, count }, { now, rows }) {
      const before = cursor === undefined ? Number.POSITIVE_INFINITY : numberOf(cursor, state.next);
      const newestFirst = [...rows.values()]
        .filter((row) => row.number < before && (status === undefined || row.status === status))
        // The job may report its expiry late.
        .filter(({ endedAt }) => endedAt === undefined || now < endedAt + CRAWL_KEPT_MS)
        .sort((one, other) => other.number - one.number);
      const shown = newestFirst.slice(0, count);
      const last = newestFirst.length > count ? shown.at(-1) : undefined;
      return {
        state,
        reply: {
          entries: shown.map(entryOf),
          ...(last !== undefined && { cursor: String(last.number) }),
        },
      };
    },
  },
});

type State = DeepReadonly<CrawlListState>;
type Row = DeepReadonly<CrawlListRow>;

const entryOf = ({ number, bytes, requestBytes, hostsMax, ...entry }: Row) => entry;

const withoutRow = (rows: ReadonlyMap<string, Row>, id: string) =>
  rows.values().filter((row) => row.id !== id);

/** Returns the bytes of all rows. A host of an earlier version drops the sum, but not the rows. */
function storedBytes({ bytes }: State, rows: ReadonlyMap<string, Row>): number {
  return bytes ?? rows.values().reduce((sum, row) => sum + bytesOf(row), 0);
}

/** Returns the sum of the bytes after a row has changed. */
function sumOf(
  state: State,
  rows: ReadonlyMap<string, Row>,
  { before, after }: { before?: Row; after?: Row },
) {
  return { bytes: storedBytes(state, rows) - bytesOf(before) + bytesOf(after) };
}

const bytesOf = ({ bytes = 0, requestBytes = 0 }: Partial<Row> = {}) => bytes + requestBytes;

/** Returns why the account may store no more, and when it may again. */
function whyFull({ bytes, bytesMax }: State, rows: Iterable<Row>): string {
  const ends = Array.from(rows, (row) => (bytesOf(row) > 0 ? row.endedAt : undefined));
  const first = Math.min(...ends.filter((end) => end !== undefined));
  const relief = Number.isFinite(first)
    ? `the earliest results are removed on ${new Date(first + CRAWL_KEPT_MS).toISOString()}`
    : `results are removed ${CRAWL_KEPT_MS / DAY_MS} days after the end of their crawl`;
  return `the account's crawls store ${bytes} bytes and may store ${bytesMax} (TRUNKLINE_CRAWL_BYTES_PER_ACCOUNT); ${relief}`;
}

function numberOf(cursor: string, next: number): number {
  if (/^\d{1,15}$/.test(cursor) && Number(cursor) < next) return Number(cursor);
  throw new ActorError(
    "invalid_request",
    "Cannot list crawls: the cursor does not belong to this list",
  );
}

const limitReached = (reason: string) =>
  new ActorError("limit_reached", `Cannot start crawl: ${reason}`);

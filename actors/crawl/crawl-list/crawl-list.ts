/** Keeps the list of an account's crawl jobs and limits their number. */
import type { DeepReadonly } from "../../../schemas/contract.ts";
import { crawlList } from "../../../schemas/crawl/crawl-list.ts";
import {
  CRAWL_KEPT_MS,
  CRAWLS_KEPT_MAX,
  CRAWLS_RUNNING_MAX,
} from "../../../schemas/crawl/limits.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { defineActor } from "../../runtime/kinds/define-actor.ts";
import { CrawlListRow, CrawlListState } from "./crawl-list-state.ts";

/**
 * Time after which an admitted crawl that has not started no longer counts as running: it will not start any more.
 */
export const CRAWL_ADMITTED_MS = 60_000;

/**
 * Stored at: account id
 *
 * State: `{ next, running, kept, admitted: [epoch ms] }`; `next` numbers the jobs; admitted ones that have not
 * started count as running for a minute. A row for each job, by its id: `{ id, url, status, createdAt, endedAt?,
 * total?, finished?, skipped?, number }`, until its results expire; the counts are those of the end
 */
export const crawlListActor = defineActor(crawlList, {
  state: CrawlListState,
  rows: CrawlListRow,
  initial: { next: 0, running: 0, kept: 0, admitted: [] },

  handlers: {
    admit(state, _input, { now }) {
      const admitted = state.admitted.filter((at) => now < at + CRAWL_ADMITTED_MS);
      const running = state.running + admitted.length;
      if (running >= CRAWLS_RUNNING_MAX) {
        throw limitReached(`${running} of the account's run, which is the limit`);
      }
      const kept = state.kept + admitted.length;
      if (kept >= CRAWLS_KEPT_MAX) {
        throw limitReached(`${kept} of the account's are kept, which is the limit`);
      }
      return { state: { ...state, admitted: [...admitted, now] }, reply: {} };
    },

    started(state, { id, url, createdAt }, { now, rows }) {
      if (rows.has(id)) return { state };
      const { next, running, kept } = state;
      const at = createdAt ?? now;
      const row = { id, url, status: "running" as const, createdAt: at, number: next };
      const [, ...admitted] = state.admitted;
      return {
        state: { next: next + 1, running: running + 1, kept: kept + 1, admitted },
        rows: { [id]: row },
      };
    },

    ended(state, { id, status, endedAt, ...counts }, { now, rows }) {
      const row = rows.get(id);
      // Changes nothing for a job that has ended already, or that has expired and so has no row.
      if (row?.status !== "running" || status === "running") return { state };
      return {
        state: { ...state, running: state.running - 1 },
        rows: { [id]: { ...row, ...counts, status, endedAt: endedAt ?? now } },
      };
    },

    expired(state, { id }, { rows }) {
      const row = rows.get(id);
      if (row === undefined) return { state };
      const running = state.running - (row.status === "running" ? 1 : 0);
      return { state: { ...state, running, kept: state.kept - 1 }, rows: { [id]: null } };
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

const entryOf = ({ number, ...entry }: DeepReadonly<CrawlListRow>) => entry;

function numberOf(cursor: string, next: number): number {
  if (/^\d{1,15}$/.test(cursor) && Number(cursor) < next) return Number(cursor);
  throw new ActorError(
    "invalid_request",
    "Cannot list crawls: the cursor does not belong to this list",
  );
}

const limitReached = (reason: string) =>
  new ActorError("limit_reached", `Cannot start crawl: ${reason}`);

/** Decides which pages a crawl has, in which order they are requested, and when the crawl ends. */
import { type DeepReadonly, envelope } from "../../../schemas/contract.ts";
import { crawlJob, type PageOutcome } from "../../../schemas/crawl/crawl-job.ts";
import { crawlList } from "../../../schemas/crawl/crawl-list.ts";
import { crawlPage } from "../../../schemas/crawl/crawl-page.ts";
import { CRAWL_KEPT_MS, CRAWL_MS_MAX } from "../../../schemas/crawl/limits.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { defineActor } from "../../runtime/kinds/define-actor.ts";
import { crawlUrl } from "../lib/scope/crawl-url.ts";
import { admitFromBacklog, askForMore } from "./discovery/backlog.ts";
import { admitStart } from "./discovery/frontier.ts";
import { openSitemaps } from "./discovery/sitemaps.ts";
import { endIfDone, endJob } from "./end-job.ts";
import { recordFault } from "./faults.ts";
import { newsOf } from "./news.ts";
import { learnRobots, readSlice } from "./read-sitemaps.ts";
import { listRecords, summaryOf } from "./records.ts";
import { settleAll } from "./report.ts";
import { settleExtracted } from "./settle.ts";
import { CrawlJobRow, CrawlJobState, INITIAL } from "./state/crawl-job-state.ts";
import { JobDraft } from "./state/job-draft.ts";
import { knownRows } from "./state/known-urls.ts";
import { planRows } from "./state/plan.ts";
import { countStored, endWithoutRoom, nothingStored } from "./stored-bytes.ts";
import { endTurn, grantTurn, removeReported, returnTurn } from "./turns.ts";
import { notifySites, pauseFullHost, resumePausedHosts } from "./wanted-requests.ts";

/**
 * Stored at: job id, 32 hex
 *
 * State: `{ status, account, request, createdAt, endedAt?, messages, refusal?, browserMs, records, admitted, queued,
 * inFlight, settled, total, finished, disallowed, skipped, skippedKept, skippedLate?, knownRows?, homes: [{ origin,
 * learned, guess? }], sitemaps: { known, released, open: [number] }, extractions?: { asked, first?, last? }, faults?:
 * { since, turns }, hosts?: { open, first?, last? }, hostsMax?, fullHosts?: [host], stored?: { bytes, reported, step, isFull? },
 * backlog: { asked, files, sitemap, links: { first, next } } }`: the status and counts of the job; everything of which
 * a job may have many is in rows; `stored` counts the bytes of its results in `CRAWL`
 *
 * Row `plan`, `patterns/include/<n>`, `patterns/exclude/<n>`: the request without its patterns; 25 patterns in each
 * row
 *
 * Row `g/<n>`: `{ text }`: eight records, one line each; a line begins with the number of characters that it shares
 * with the line before, and a space; the whole line has the fields `url`, `depth`, `status`, `next`, `settledAs` and
 * `shown` of a record, separated by tabs, and the others as JSON; an empty line stands for a record with a row of its
 * own, because its line would be longer than 600 bytes; earlier releases stored `{ lines }`, which share nothing
 *
 * Row `p/<index>`: a record with a row of its own, as each record of a job has that an earlier release started: `{
 * url, at?, hops?, depth, status, failures?, alone?, jsonSource?, next?, settledAs?, shown?, reason?, metadata?, blobs?
 * }`; `shown` holds reason, metadata and blobs of a settled page as JSON in one string, without what the row or the
 * job's id says already; `next` is the page behind it in its host's queue, or in the queue for JSON (`jsonSource` is
 * the blob from which a model makes that); `settledAs` is its number in the order in which pages were settled
 *
 * Row `z/<n>`: `{ letters, settledAs }`: the status of 2,000 records, one letter each (q: not settled, c: completed,
 * e: errored, d: disallowed, s: skipped), and the largest `settledAs` among them
 *
 * Row `u/<0 to knownRows - 1>`: `{ known }`: known addresses, in 16,384 rows if `knownRows` is missing, ` <13 hex of
 * a salted SHA-256>=<index, base 36>` each; those of sitemaps as well
 *
 * Row `h/<host>`: `{ first?, last?, queued, told?, open?, waits?, behind? }`: the queue of a host, how many requests
 * the job has announced to the site, and whether the job is open there or waits for that, and before which host;
 * removed when nothing waits there
 *
 * Row `t/<turn>`: `{ host, pages, sitemaps }` that the turn has not reported yet; removed with its report
 *
 * Row `s/<number>`: `{ url, nesting, guessed?, inFlight, failures }`: a sitemap that the job has not read yet
 *
 * Row `b/<lane>/<n>`: `{ depth, text }`: found addresses that the job has not looked at yet, in the lanes `files`,
 * `sitemap` and `links`, one line each as in `g/<n>`, with the fields `url` and `lastModifiedAt`; earlier releases
 * stored `{ depth, found: [{ url, lastModifiedAt? }] }`
 */
export const crawlJobActor = defineActor(crawlJob, {
  state: CrawlJobState,
  rows: CrawlJobRow,
  initial: INITIAL,
  mayComeEarly: ["askAgain"],

  handlers: {
    start(state, { account, plan, request, bytesMax }, context) {
      if (state.request === request.name) return { state, reply: {} };
      if (state.status !== "unknown") {
        throw new ActorError("conflict", `Cannot start crawl: it is ${state.status}`);
      }
      const start = crawlUrl(plan.url);
      if (!start.valid) {
        throw new ActorError("invalid_request", `Cannot start crawl: ${start.reason}`);
      }
      const { url } = start;
      const { now, key } = context;
      const homes = [{ origin: new URL(url).origin, learned: false }];
      const begun = { status: "running" as const, createdAt: now, account, homes };
      const kept = { request: request.name, knownRows: knownRows(plan.limit) };
      const stored = nothingStored(bytesMax);
      const draft = new JobDraft({ ...state, ...begun, ...kept, stored }, context);
      for (const [row, value] of planRows({ ...plan, url })) draft.write(row, value);
      admitStart(draft, url);
      draft.remind("timeOut", now + CRAWL_MS_MAX);
      const started = { id: key, url, createdAt: now, requestBytes: request.bytes };
      draft.send(envelope(crawlList, account, "started", started));
      return { ...conclude(state, draft), reply: {} };
    },

    get(state, { account }, context) {
      checkReadable(state, account, context.now);
      return { state, reply: summaryOf(new JobDraft(state, context)) };
    },

    list(state, query, context) {
      checkReadable(state, query.account, context.now);
      const draft = new JobDraft(state, context);
      return { state, reply: { summary: summaryOf(draft), ...listRecords(draft, query) } };
    },

    cancel(state, { account }, context) {
      checkReadable(state, account, context.now);
      if (state.status !== "running") {
        throw new ActorError("conflict", `Cannot cancel crawl: it has ended (${state.status})`);
      }
      const draft = new JobDraft(state, context);
      endJob(draft, "cancelled_by_user");
      return { ...conclude(state, draft), reply: {} };
    },

    turnGranted(state, granted, context) {
      const draft = new JobDraft(state, context);
      if (draft.isRunning) {
        grantTurn(draft, granted);
        return conclude(state, draft);
      }
      returnTurn(draft, granted);
      return { ...draft.transition(), state };
    },

    robotsLearned(state, learned, context) {
      if (state.status !== "running") return { state };
      const draft = new JobDraft(state, context);
      return learnRobots(draft, learned) ? conclude(state, draft) : { state };
    },

    siteFull(state, { host }, context) {
      if (state.status !== "running") return { state };
      const draft = new JobDraft(state, context);
      pauseFullHost(draft, host);
      return conclude(state, draft);
    },

    askAgain(state, _input, context) {
      if (state.status !== "running") return { state };
      const draft = new JobDraft(state, context);
      resumePausedHosts(draft);
      return conclude(state, draft);
    },

    turnReported(state, { turn, outcomes }, context) {
      const draft = new JobDraft(state, context);
      // After the end of the job, only the bytes of pages count that workers were storing at that time.
      if (!draft.isRunning && storedBytesOf(outcomes) === 0) return { state };
      const reported = removeReported(draft, turn, outcomes);
      if (reported.length === 0) return { state };
      countStored(draft, storedBytesOf(reported));
      settleAll(draft, reported);
      return conclude(state, draft);
    },

    sitemapRead(state, slice, context) {
      if (state.status !== "running") return { state };
      const draft = new JobDraft(state, context);
      return readSlice(draft, slice) ? conclude(state, draft) : { state };
    },

    turnEnded(state, ended, context) {
      if (state.status !== "running") return { state };
      const draft = new JobDraft(state, context);
      if (!endTurn(draft, ended)) return { state };
      if (ended.fault !== undefined) recordFault(draft, ended.host, ended.fault);
      return conclude(state, draft);
    },

    jsonExtracted(state, extracted, context) {
      if (state.status !== "running") return { state };
      const draft = new JobDraft(state, context);
      if (!settleExtracted(draft, extracted)) return { state };
      countStored(draft, extracted.storedBytes ?? 0);
      return conclude(state, draft);
    },

    accountFull(state, { reason }, context) {
      if (state.status !== "running") return { state };
      const draft = new JobDraft(state, context);
      endWithoutRoom(draft, reason);
      return conclude(state, draft);
    },

    hostsShared(state, { hostsMax }, context) {
      if (state.status !== "running") return { state };
      const draft = new JobDraft(state, context);
      draft.state.hostsMax = hostsMax;
      return conclude(state, draft);
    },

    admitMore(state, _input, context) {
      if (state.status !== "running") return { state };
      const draft = new JobDraft(state, context);
      draft.state.backlog = { ...state.backlog, asked: false };
      admitFromBacklog(draft);
      return conclude(state, draft);
    },

    timeOut(state, _input, context) {
      if (state.status !== "running") return { state };
      const draft = new JobDraft(state, context);
      endJob(draft, "cancelled_due_to_timeout", ["The crawl took longer than 7 days"]);
      return conclude(state, draft);
    },

    expire(state, _input, { key }) {
      if (state.endedAt === undefined) return { state };
      return {
        forget: true,
        send: [
          envelope(crawlPage, state.account, "purge", { job: key }),
          envelope(crawlList, state.account, "expired", { id: key }),
        ],
      };
    },
  },
});

type State = DeepReadonly<CrawlJobState>;

const storedBytesOf = (outcomes: readonly PageOutcome[]) =>
  outcomes.reduce(
    (sum, outcome) => sum + ("storedBytes" in outcome ? (outcome.storedBytes ?? 0) : 0),
    0,
  );

/** Refuses a reader of another account as if the job did not exist. */
function checkReadable({ status, account, endedAt }: State, asker: string, now: number): void {
  // The reminder that removes the job may be late.
  const isExpired = endedAt !== undefined && now >= endedAt + CRAWL_KEPT_MS;
  if (status === "unknown" || account !== asker || isExpired) {
    throw new ActorError("not_found", "Cannot find crawl: unknown here, or another account's");
  }
}

/** Completes a transition: opens more sitemaps, ends a finished job, continues the backlog, and notifies sites. */
function conclude(before: State, draft: JobDraft) {
  if (draft.isRunning) openSitemaps(draft);
  if (draft.isRunning) endIfDone(draft);
  if (draft.isRunning) askForMore(draft);
  notifySites(draft);
  return { ...draft.transition(), ...newsOf(draft, before) };
}

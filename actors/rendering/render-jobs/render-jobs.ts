/**
 * The actor of an account's rendering jobs. It stores their order and their outcome, and removes them after a time.
 */
import { OUTGOING_WAITING_MAX } from "../../../schemas/apps/limits.ts";
import type { DeepReadonly } from "../../../schemas/contract.ts";
import { ActorError } from "../../../schemas/errors.ts";
import {
  RENDER_JOBS_KEPT_MAX,
  RENDER_JOBS_WAITING_MAX,
} from "../../../schemas/rendering/limits.ts";
import { renderJobs } from "../../../schemas/rendering/render-jobs.ts";
import { defineActor } from "../../runtime/kinds/define-actor.ts";
import { isKept, isWaiting, JobsDraft, jobOf } from "./jobs-draft.ts";
import { RenderJobRow, RenderJobsState } from "./render-jobs-state.ts";
import { isLost, tend } from "./tend.ts";

/** Retry delay for a client that was refused because too many of its jobs wait. */
const WAITING_RETRY_S = 30;

/**
 * Limits the bytes of a job list, because errors and addresses may be long. After the list has reached this limit,
 * one more job still fits into a message.
 */
const LISTED_BYTES_MAX = 600_000;

type State = DeepReadonly<RenderJobsState>;
type Row = DeepReadonly<RenderJobRow>;

/**
 * Stored at: account id
 *
 * State: `{ next, lane: [{ id, at }], webhooks, tendAt? }`; `next` numbers the jobs; `lane` are those whose tasks are
 * in the lane of pages, 16 at most, and when each was last heard of; `webhooks` have not ended
 *
 * Row `<job id>`: `{ number, call, status, createdAt, startedAt?, endedAt?, error?: { code, message, details },
 * result?: { object, bytes, mediaType, browserMs, targetStatus? }, webhook?: { url, status? }, cacheTtlS,
 * requestBytes, resultBytes, task?, requestKey?, secret? }`: a job, until 24 hours after its end; `requestKey` and
 * `secret` are sealed, and removed at its end
 */
export const renderJobsActor = defineActor(renderJobs, {
  state: RenderJobsState,
  rows: RenderJobRow,
  initial: { next: 0, lane: [], webhooks: 0 },
  mayComeEarly: ["tend"],

  handlers: {
    admit(state, wanted, context) {
      checkRoom(new JobsDraft(state, context), wanted);
      return { state, reply: {} };
    },

    create(state, { id, call, requestBytes, bytesMax, cacheTtlS, ...sealed }, context) {
      const { requestKey, webhook } = sealed;
      const draft = new JobsDraft(state, context);
      const known = draft.row(id);
      if (known) return { state, reply: created(id, known) };
      checkRoom(draft, { requestBytes, bytesMax, hasWebhook: webhook !== undefined });
      const job: Row = {
        ...{ number: state.next, call, status: "queued", createdAt: draft.now, cacheTtlS },
        ...{ requestBytes, resultBytes: 0 },
        ...(requestKey !== undefined && { requestKey }),
        ...(webhook && { webhook: { url: webhook.url }, secret: webhook.secret }),
      };
      draft.write(id, job);
      draft.state.next = state.next + 1;
      if (webhook) draft.state.webhooks = state.webhooks + 1;
      draft.feed();
      return { ...draft.transition(), reply: created(id, job) };
    },

    get(state, { id }, { rows, now }) {
      return { state, reply: jobOf(id, found(rows, id, now)) };
    },

    list(state, { cursor, status, count }, { rows, now }) {
      const before = cursor === undefined ? Number.POSITIVE_INFINITY : numberOf(cursor, state);
      const newestFirst = [...rows]
        .filter(([, job]) => job.number < before && isKept(job, now))
        .filter(([, job]) => status === undefined || job.status === status)
        .sort(([, one], [, other]) => other.number - one.number);
      const jobs = firstOf(newestFirst, count);
      const last = jobs.length < newestFirst.length ? newestFirst[jobs.length - 1]?.[1] : undefined;
      return { state, reply: { jobs, ...(last && { cursor: String(last.number) }) } };
    },

    cancel(state, { id }, context) {
      const draft = new JobsDraft(state, context);
      const job = found(context.rows, id, draft.now);
      if (!isWaiting(job)) {
        throw new ActorError("conflict", `Cannot cancel job: it has ended (${job.status})`);
      }
      draft.end(id, job, { status: "cancelled" });
      return { ...draft.transition(), reply: jobOf(id, draft.row(id) ?? job) };
    },

    begin(state, { id, task }, context) {
      const draft = new JobsDraft(state, context);
      const job = draft.row(id);
      if (!job || !isWaiting(job)) {
        draft.release(id);
        draft.feed();
        return { ...draft.transition(), reply: { isWanted: false as const } };
      }
      // The actor queued this task again although the first task still runs, so the second task is refused.
      if (job.status === "running" && job.task !== task && !isLost(draft, id)) {
        return { state, reply: { isWanted: false as const } };
      }
      const { startedAt = draft.now, call, cacheTtlS, requestKey } = job;
      draft.write(id, { ...job, status: "running", startedAt, task });
      draft.hold(id);
      const wanted = { call, cacheTtlS, ...(requestKey !== undefined && { requestKey }) };
      return { ...draft.transition(), reply: { isWanted: true as const, ...wanted } };
    },

    check(state, { id, task }, { rows }) {
      return { state, reply: { isWanted: runs(rows.get(id), task) } };
    },

    reserve(state, { id, task, bytes, bytesMax }, context) {
      const draft = new JobsDraft(state, context);
      const job = draft.row(id);
      if (!job || !runs(job, task)) {
        throw new ActorError("cancelled", "Cannot store result: the job has ended");
      }
      if (bytes <= job.resultBytes) return { state, reply: {} };
      checkBytes("store result", draft, { added: bytes - job.resultBytes, bytesMax });
      draft.write(id, { ...job, resultBytes: bytes });
      return { ...draft.transition(), reply: {} };
    },

    ended(state, { id, task, result, error }, context) {
      const draft = new JobsDraft(state, context);
      const job = draft.row(id);
      if (job && isWaiting(job)) {
        // If the actor queued a task twice, both tasks report. The report of the other task is ignored.
        if (job.task !== undefined && job.task !== task) return { state };
        if (result) draft.end(id, job, { status: "completed", result });
        else if (error) draft.end(id, job, { status: "failed", error });
      } else if (result && job?.status !== "completed") draft.purge([result.object]);
      draft.release(id);
      draft.feed();
      return draft.transition();
    },

    webhookEnded(state, { id, status }, context) {
      const draft = new JobsDraft(state, context);
      draft.state.webhooks = Math.max(0, state.webhooks - 1);
      const job = draft.row(id);
      if (job?.webhook) draft.write(id, { ...job, webhook: { ...job.webhook, status } });
      // The last `tend` may have kept the state only because this webhook was open.
      if (draft.state.webhooks === 0 && draft.jobs().length === 0) draft.remindBy(draft.now);
      return draft.transition();
    },

    tend(state, _input, context) {
      const draft = new JobsDraft(state, context);
      draft.state.tendAt = undefined;
      tend(draft);
      const { lane, webhooks } = draft.state;
      if (draft.jobs().length === 0 && lane.length === 0 && webhooks === 0) {
        return { forget: true as const, send: draft.sent };
      }
      return draft.transition();
    },
  },
});

/** Returns the first jobs of a list: at most `count`, and only as many as fit a reply. */
function firstOf(list: readonly [id: string, job: Row][], count: number) {
  const jobs: ReturnType<typeof jobOf>[] = [];
  let bytes = 0;
  for (const [id, row] of list.slice(0, count)) {
    if (bytes > LISTED_BYTES_MAX) break;
    const job = jobOf(id, row);
    bytes += Buffer.byteLength(JSON.stringify(job));
    jobs.push(job);
  }
  return jobs;
}

const runs = (job: Row | undefined, task: string) => job?.status === "running" && job.task === task;

function found(rows: ReadonlyMap<string, Row>, id: string, now: number): Row {
  const job = rows.get(id);
  if (job && isKept(job, now)) return job;
  throw new ActorError("not_found", "Cannot find job: unknown here, another account's, or expired");
}

/** Returns a job as the reply of `create`. A job that has ended needs no key, because its request is removed. */
function created(id: string, job: Row) {
  const isKeyKept = job.requestKey !== undefined || !isWaiting(job);
  return { ...jobOf(id, job), ...(isKeyKept && { isKeyKept: true as const }) };
}

function numberOf(cursor: string, { next }: State): number {
  if (/^\d{1,15}$/.test(cursor) && Number(cursor) < next) return Number(cursor);
  const text = "Cannot list jobs: the cursor does not belong to this list";
  throw new ActorError("invalid_request", text);
}

function checkRoom(
  draft: JobsDraft,
  wanted: { requestBytes: number; bytesMax: number; hasWebhook: boolean },
): void {
  const jobs = draft.jobs().filter(([, job]) => isKept(job, draft.now));
  if (jobs.filter(([, job]) => isWaiting(job)).length >= RENDER_JOBS_WAITING_MAX) {
    const text = `Cannot start job: ${RENDER_JOBS_WAITING_MAX} of the account have not ended, which is the limit`;
    throw new ActorError("queue_full", text, { retryAfterS: WAITING_RETRY_S });
  }
  if (jobs.length >= RENDER_JOBS_KEPT_MAX) {
    const text = `${RENDER_JOBS_KEPT_MAX} of the account are kept, each for 24 hours after its end, which is the limit`;
    throw new ActorError("limit_reached", `Cannot start job: ${text}`);
  }
  if (wanted.hasWebhook && draft.state.webhooks >= OUTGOING_WAITING_MAX) {
    const text = `the webhooks of ${OUTGOING_WAITING_MAX} jobs have not arrived, which is the limit`;
    throw new ActorError("limit_reached", `Cannot start job: ${text}`);
  }
  checkBytes("start job", draft, { added: wanted.requestBytes, bytesMax: wanted.bytesMax });
}

function checkBytes(
  what: string,
  draft: JobsDraft,
  { added, bytesMax }: { added: number; bytesMax: number },
): void {
  const stored = draft
    .jobs()
    .reduce((sum, [, { requestBytes, resultBytes }]) => sum + requestBytes + resultBytes, 0);
  if (stored + added <= bytesMax) return;
  const text = `requests and results of the account's jobs take ${stored} bytes, and with ${added} more they would pass ${bytesMax}`;
  throw new ActorError("limit_reached", `Cannot ${what}: ${text}; results are kept for 24 hours`);
}

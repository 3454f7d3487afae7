/** The periodic work on jobs: removes expired jobs, and queues lost jobs again. */
import { RENDER_JOB_KEPT_MS, RENDER_JOB_LOST_MS } from "../../../schemas/rendering/limits.ts";
import { isWaiting, type JobsDraft } from "./jobs-draft.ts";

/**
 * Maximum number of jobs that one transition ends or removes. Each may send two messages, and a transition has at most
 * 256 sends.
 */
export const JOBS_TENDED_MAX = 100;
/**
 * Limits the characters of the messages that one transition sends. With one more message, for a webhook with a long
 * address, the total still fits TRANSITION_SEND_BYTES_MAX.
 */
const TENDED_CHARS_MAX = 100_000;

export function tend(draft: JobsDraft): void {
  limitTimes(draft);
  expire(draft);
  requeue(draft);
  draft.feed();
  // A reminder with a past time fires immediately and processes the remaining expired jobs.
  for (const [, { createdAt, endedAt }] of draft.jobs()) {
    draft.remindBy((endedAt ?? createdAt) + RENDER_JOB_KEPT_MS);
  }
  for (const { at } of draft.state.lane) draft.remindBy(at + RENDER_JOB_LOST_MS);
}

/** A report in the future means that the clock was set back. The job of a lost task must not wait for that long. */
function limitTimes({ state, now }: JobsDraft): void {
  if (!state.lane.some(({ at }) => at > now)) return;
  state.lane = state.lane.map(({ id, at }) => ({ id, at: Math.min(at, now) }));
}

/** Returns true if the job's task has no place in the lane, or sent no report for longer than a task may run. */
export function isLost({ state, now }: JobsDraft, id: string): boolean {
  const place = state.lane.find((one) => one.id === id);
  return place === undefined || now >= place.at + RENDER_JOB_LOST_MS;
}

/** Removes ended jobs that have expired, and ends waiting jobs that have expired. */
function expire(draft: JobsDraft): void {
  const { now } = draft;
  const isOver = ({ endedAt, createdAt }: { endedAt?: number | undefined; createdAt: number }) =>
    now >= (endedAt ?? createdAt) + RENDER_JOB_KEPT_MS;
  const late = draft.jobs().filter(([, job]) => isOver(job));
  const objects: string[] = [];
  let chars = 0;
  for (const [id, job] of late.slice(0, JOBS_TENDED_MAX)) {
    if (chars > TENDED_CHARS_MAX) break;
    if (isWaiting(job)) {
      const before = draft.sent.length;
      const message = "Cannot finish job: it did not end within 24 hours";
      draft.end(id, job, {
        status: "failed",
        error: { code: "deadline_exceeded", message, details: {} },
      });
      chars += JSON.stringify(draft.sent.slice(before)).length;
      continue;
    }
    if (job.result) objects.push(job.result.object);
    draft.write(id, null);
  }
  draft.purge(objects);
}

/** Removes jobs whose tasks were lost, for example after a restore, from the lane. They are then queued again. */
function requeue(draft: JobsDraft): void {
  const lost = draft.state.lane.filter(({ id }) => isLost(draft, id));
  for (const { id } of lost) {
    draft.release(id);
    const job = draft.row(id);
    if (!job || !isWaiting(job)) continue;
    const { task: _, ...again } = job;
    draft.write(id, { ...again, status: "queued" });
  }
}

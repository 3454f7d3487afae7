/** The jobs of an account during the transition that changes them. */
import { outgoingWebhook } from "../../../schemas/apps/outgoing-webhook.ts";
import { type DeepReadonly, envelope } from "../../../schemas/contract.ts";
import { jobEndedEvent } from "../../../schemas/rendering/http/render-jobs.ts";
import {
  RENDER_JOB_KEPT_MS,
  RENDER_JOB_LOST_MS,
  RENDER_JOBS_AT_ONCE_MAX,
} from "../../../schemas/rendering/limits.ts";
import { render } from "../../../schemas/rendering/render.ts";
import {
  type JobError,
  type JobResult,
  type RenderJob,
  requestObjectOf,
} from "../../../schemas/rendering/render-jobs.ts";
import { Draft } from "../../runtime/draft.ts";
import type { RenderJobRow, RenderJobsState } from "./render-jobs-state.ts";

type Row = DeepReadonly<RenderJobRow>;
type Listed = [id: string, job: Row];

type Ending =
  | { status: "completed"; result: DeepReadonly<JobResult> }
  | { status: "failed"; error: DeepReadonly<JobError> }
  | { status: "cancelled" };

export class JobsDraft extends Draft<RenderJobsState, RenderJobRow, "tend"> {
  readonly #written = new Set<string>();

  /** Returns all jobs with the changes of this draft, the oldest first. */
  jobs(): Listed[] {
    const ids = new Set([...this.context.rows.keys(), ...this.#written]);
    return [...ids]
      .flatMap((id): Listed[] => {
        const job = this.row(id);
        return job ? [[id, job]] : [];
      })
      .sort(([, one], [, other]) => one.number - other.number);
  }

  override write(id: string, job: Row | null): void {
    this.#written.add(id);
    super.write(id, job);
  }

  /** Queues tasks for the oldest queued jobs while the lane has room. */
  feed(): void {
    const { lane } = this.state;
    const room = RENDER_JOBS_AT_ONCE_MAX - lane.length;
    if (room <= 0) return;
    const placed = new Set(lane.map(({ id }) => id));
    const next = this.jobs()
      .filter(([id, { status }]) => status === "queued" && !placed.has(id))
      .slice(0, room);
    if (next.length === 0) return;
    for (const [id] of next) this.send(envelope(render, this.key, "job", { id }));
    this.state.lane = [...lane, ...next.map(([id]) => ({ id, at: this.now }))];
    this.remindBy(this.now + RENDER_JOB_LOST_MS);
  }

  /** Records that the job's task is alive. */
  hold(id: string): void {
    this.state.lane = [...this.#without(id), { id, at: this.now }];
    this.remindBy(this.now + RENDER_JOB_LOST_MS);
  }

  /** Frees the slot of a job's task that has ended. */
  release(id: string): void {
    const without = this.#without(id);
    if (without.length < this.state.lane.length) this.state.lane = without;
  }

  /** Ends a job. Its task keeps its slot in the lane until the task ends. */
  end(id: string, job: Row, ending: Ending): void {
    const { secret, requestKey: _k, task: _t, ...kept } = job;
    const result = ending.status === "completed" ? ending.result : undefined;
    const webhook = job.webhook && { ...job.webhook, status: "waiting" as const };
    const ended: Row = {
      ...kept,
      ...ending,
      endedAt: this.now,
      requestBytes: 0,
      resultBytes: result?.bytes ?? 0,
      ...(webhook && { webhook }),
    };
    this.write(id, ended);
    this.purge([requestObjectOf(this.key, id)]);
    if (webhook && secret !== undefined) {
      const text = jobEndedEvent(jobOf(id, ended));
      const payload = { payload: { text }, payloadBytes: Buffer.byteLength(text) };
      const post = { id, url: webhook.url, ...payload, secret: { sealed: secret } };
      this.send(envelope(outgoingWebhook, this.key, "jobEnded", post));
    }
    this.remindBy(this.now + RENDER_JOB_KEPT_MS);
  }

  purge(objects: readonly string[]): void {
    if (objects.length > 0) this.send(envelope(render, this.key, "purge", { objects }));
  }

  /** Sets the reminder to `at`, unless it is already due earlier. */
  remindBy(at: number): void {
    const { tendAt } = this.state;
    if (tendAt !== undefined && tendAt <= at) return;
    this.state.tendAt = at;
    this.remind("tend", at);
  }

  #without(id: string) {
    return this.state.lane.filter((place) => place.id !== id);
  }
}

/** Returns a job in the form that other parts of the platform use. */
export function jobOf(id: string, row: Row): DeepReadonly<RenderJob> {
  const { number: _n, cacheTtlS: _c, requestBytes: _q, resultBytes: _r, ...rest } = row;
  const { task: _t, secret: _s, requestKey: _k, ...job } = rest;
  return { id, ...job };
}

export const isWaiting = ({ status }: Pick<Row, "status">) =>
  status === "queued" || status === "running";

/** Returns false for an expired job, even if `tend` is late and the job is still stored. */
export const isKept = ({ endedAt }: Row, now: number) =>
  endedAt === undefined || now < endedAt + RENDER_JOB_KEPT_MS;

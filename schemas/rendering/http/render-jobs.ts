/** Wire shapes of rendering jobs, for REST and for their webhooks. */
import { z } from "zod";
import { AccountPath } from "../../account/http/accounts.ts";
import { OutgoingStatus } from "../../apps/outgoing-webhook.ts";
import type { DeepReadonly } from "../../contract.ts";
import { ERRORS } from "../../errors.ts";
import { PAGE_ENTRIES, PAGE_ENTRIES_MAX } from "../../limits.ts";
import { Id } from "../../values.ts";
import { RENDER_JOB_KEPT_MS } from "../limits.ts";
import { codeOf, type RenderJob, RenderJobStatus } from "../render-jobs.ts";
import { RenderCall } from "./render-calls.ts";

export const JobPath = AccountPath.extend({
  job_id: z.string().describe("The id from the response with status 202"),
});
export type JobPath = z.output<typeof JobPath>;

export const JobsQuery = z.strictObject({
  cursor: z.string().min(1).max(128).optional().describe("Cursor of the previous response"),
  limit: z.coerce.number().pipe(z.int().min(1).max(PAGE_ENTRIES_MAX)).default(PAGE_ENTRIES),
  status: RenderJobStatus.optional().describe("Returns only jobs with this status"),
});
export type JobsQuery = z.output<typeof JobsQuery>;

export const WireJob = z
  .object({
    id: Id,
    call: RenderCall,
    status: RenderJobStatus,
    createdAt: z.iso.datetime(),
    startedAt: z.iso.datetime().optional(),
    endedAt: z.iso.datetime().optional(),
    expiresAt: z.iso
      .datetime()
      .optional()
      .describe("The time when the ended job and its result are deleted"),
    error: z
      .object({
        code: z.int().describe("The error code that the call itself would have returned"),
        message: z.string(),
      })
      .optional()
      .describe("The reason of the failure"),
    result: z.object({ mediaType: z.string(), bytes: z.int() }).optional(),
    webhook: z
      .object({ url: z.string(), status: OutgoingStatus.optional() })
      .optional()
      .describe("Present once the job has ended"),
  })
  .meta({ title: "RenderJob" });
export type WireJob = z.input<typeof WireJob>;

export function wireJob(job: DeepReadonly<RenderJob>): WireJob {
  const { id, call, status, createdAt, startedAt, endedAt, error, result, webhook } = job;
  return {
    ...{ id, call, status, createdAt: isoTime(createdAt) },
    ...(startedAt !== undefined && { startedAt: isoTime(startedAt) }),
    ...(endedAt !== undefined && {
      ...{ endedAt: isoTime(endedAt), expiresAt: isoTime(endedAt + RENDER_JOB_KEPT_MS) },
    }),
    ...(error && { error: { code: ERRORS[codeOf(error)].code, message: error.message } }),
    ...(result && { result: { mediaType: result.mediaType, bytes: result.bytes } }),
    ...(webhook && { webhook }),
  };
}

/** The body of the webhook of a job that has ended, as Standard Webhooks recommend. */
export function jobEndedEvent(job: DeepReadonly<RenderJob>): string {
  const { webhook: _, ...data } = wireJob(job);
  return JSON.stringify({ type: `job.${job.status}`, timestamp: data.endedAt, data });
}

const isoTime = (epochMs: number) => new Date(epochMs).toISOString();

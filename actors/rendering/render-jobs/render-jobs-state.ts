/** The stored rendering jobs of an account. */
import { z } from "zod";
import { SEALED_CHARS_MAX } from "../../../schemas/apps/limits.ts";
import { RenderJob } from "../../../schemas/rendering/render-jobs.ts";
import { EpochMs, Id } from "../../../schemas/values.ts";

export const RenderJobsState = z.object({
  /** Number of the next job. */
  next: z.int().min(0),
  /** Jobs whose tasks are in the lane of pages, and when the worker of each last reported. */
  lane: z.array(z.object({ id: Id, at: EpochMs })),
  /** Number of promised webhooks that have neither arrived nor failed, including those of jobs that have not ended. */
  webhooks: z.int().min(0),
  /** When the reminder `tend` is due; it may be earlier than necessary. */
  tendAt: EpochMs.optional(),
});
export type RenderJobsState = z.infer<typeof RenderJobsState>;

/** A job, in the row of its id. Numbers only grow, so a cursor stays valid while jobs are added and removed. */
export const RenderJobRow = RenderJob.omit({ id: true }).extend({
  number: z.int().min(0),
  cacheTtlS: z.number().min(0),
  /**
   * Bytes in the object store: `requestBytes` of the request until the job ends, `resultBytes` reserved for the
   * result.
   */
  requestBytes: z.int().min(0),
  resultBytes: z.int().min(0),
  /** Id of the task that runs it. */
  task: z.string().optional(),
  /** The key of the request, sealed; removed when the job ends. Absent in jobs of older versions. */
  requestKey: z.string().max(SEALED_CHARS_MAX).optional(),
  /** The secret of the webhook, sealed; removed when the job ends. */
  secret: z.string().max(SEALED_CHARS_MAX).optional(),
});
export type RenderJobRow = z.infer<typeof RenderJobRow>;

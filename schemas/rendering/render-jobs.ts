/**
 * Messages of the actor of an account's rendering jobs. A job is a rendering call that continues without its client.
 * The key of the actor is the account's id.
 */
import { z } from "zod";
import { SEALED_CHARS_MAX } from "../apps/limits.ts";
import { OutgoingStatus } from "../apps/outgoing-webhook.ts";
import { defineContract } from "../contract.ts";
import { ActorError, ERRORS, type ErrorCode } from "../errors.ts";
import { PAGE_ENTRIES_MAX } from "../limits.ts";
import { EpochMs, Id } from "../values.ts";
import { RenderCall } from "./http/render-calls.ts";
import { JOB_WEBHOOK_URL_CHARS_MAX, RENDER_JOB_ERROR_CHARS_MAX } from "./limits.ts";

export const RenderJobStatus = z.enum(["queued", "running", "completed", "failed", "cancelled"]);
export type RenderJobStatus = z.infer<typeof RenderJobStatus>;

/** The refusal that the synchronous call would have returned. */
export const JobError = z.object({
  /** A name in `ERRORS`. A stored error of an older version may have another name. */
  code: z.string(),
  message: z.string().max(RENDER_JOB_ERROR_CHARS_MAX),
  details: z.object({
    retryAfterS: z.number().optional(),
    faults: z.array(z.object({ pointer: z.string(), message: z.string() })).optional(),
    browserMs: z.number().optional(),
  }),
});
export type JobError = z.infer<typeof JobError>;

/** A response in the store, and the values of its headers. */
export const JobResult = z.object({
  /** Name of the object with the bytes. */
  object: z.string(),
  bytes: z.int().min(0),
  mediaType: z.string(),
  browserMs: z.int().min(0),
  /** HTTP status with which the page's site responded. */
  targetStatus: z.int().optional(),
});
export type JobResult = z.infer<typeof JobResult>;

export const RenderJob = z.object({
  id: Id,
  call: RenderCall,
  status: RenderJobStatus,
  createdAt: EpochMs,
  startedAt: EpochMs.optional(),
  endedAt: EpochMs.optional(),
  error: JobError.optional(),
  result: JobResult.optional(),
  /** `status` is present once the job has ended. */
  webhook: z.object({ url: z.string(), status: OutgoingStatus.optional() }).optional(),
});
export type RenderJob = z.infer<typeof RenderJob>;

/** The maximum bytes of an account in the store. */
const BytesMax = z.int().min(0);
/** The id of a job, and the id of the worker's task that runs it. */
const ofTask = { id: Id, task: z.string().min(1) };
const Job = z.object({ id: Id });
const Nothing = z.object({});
const Wanted = z.object({ isWanted: z.boolean() });

const newJob = {
  requestBytes: z.int().min(0),
  bytesMax: BytesMax,
};

export const renderJobs = defineContract({
  kind: "render-jobs",
  messages: {
    /**
     * Checks whether a job with a request of this size may be created now. Refuses for the same reasons as `create`.
     */
    admit: { input: z.object({ ...newJob, hasWebhook: z.boolean() }), reply: Nothing },
    /** Creates a job. Its request must already be stored. A repeated call returns the first job. */
    create: {
      input: z.object({
        ...newJob,
        id: Id,
        call: RenderCall,
        cacheTtlS: z.number().min(0),
        /** The key that encrypts the stored request, in sealed form: see request-key.ts. */
        requestKey: z.string().max(SEALED_CHARS_MAX).optional(),
        webhook: z
          .object({
            url: z.string().max(JOB_WEBHOOK_URL_CHARS_MAX),
            /** The secret of the webhook, sealed under the name OUTGOING_SECRET of the account. */
            secret: z.string().max(SEALED_CHARS_MAX),
          })
          .optional(),
      }),
      reply: RenderJob.extend({
        /**
         * Present if the row stores the key of the request, or if the job needs no key any more. A host of an older
         * version drops the key.
         */
        isKeyKept: z.literal(true).optional(),
      }),
    },
    get: { input: Job, reply: RenderJob },
    /** Lists jobs, newest first. */
    list: {
      input: z.object({
        cursor: z.string().max(128).optional(),
        status: RenderJobStatus.optional(),
        count: z.int().min(1).max(PAGE_ENTRIES_MAX),
      }),
      reply: z.object({ jobs: z.array(RenderJob), cursor: z.string().optional() }),
    },
    /** Cancels a job. Refuses with `conflict` if it has ended. */
    cancel: { input: Job, reply: RenderJob },

    /** From a worker that starts the job's task. Each try of the task repeats the call. */
    begin: {
      input: z.object(ofTask),
      reply: z.union([
        z.object({ isWanted: z.literal(false) }),
        z.object({
          isWanted: z.literal(true),
          call: RenderCall,
          cacheTtlS: z.number().min(0),
          /** The key as `create` received it. Absent if an older version stored the request without encryption. */
          requestKey: z.string().max(SEALED_CHARS_MAX).optional(),
        }),
      ]),
    },
    /** From a worker: checks whether its task should continue. */
    check: { input: z.object(ofTask), reply: Wanted },
    /**
     * From a worker, before it stores the result: reserves these bytes in total. Refuses if the account would exceed
     * its maximum bytes.
     */
    reserve: {
      input: z.object({ ...ofTask, bytes: z.int().min(0), bytesMax: BytesMax }),
      reply: Nothing,
    },
    /** From a worker: the job's result is stored, or its task has failed and is not retried. */
    ended: {
      input: z.object({
        ...ofTask,
        result: JobResult.optional(),
        error: JobError.optional(),
      }),
    },
    /** From the queue of webhooks: the job's webhook was delivered, or all attempts to deliver it have failed. */
    webhookEnded: { input: z.object({ id: Id, status: OutgoingStatus }) },
    /** Reminder: removes expired jobs, and queues jobs again whose tasks were lost. */
    tend: { input: Nothing },
  },
});

/** Names of a job's objects in the store. */
export const requestObjectOf = (account: string, job: string) => `${account}/${job}.request`;
export const resultObjectOf = (account: string, job: string, extension: string) =>
  `${account}/${job}.${extension}`;

export function jobErrorOf({ code, message, details }: ActorError): JobError {
  const text = message.slice(0, RENDER_JOB_ERROR_CHARS_MAX).toWellFormed();
  return { code, message: text, details: shownDetails(details) };
}

/** Converts the stored error of a failed job to a refusal. */
export const refusalOfJob = (error: JobError): ActorError =>
  new ActorError(codeOf(error), error.message, shownDetails(error.details));

export const codeOf = ({ code }: Pick<JobError, "code">): ErrorCode =>
  Object.hasOwn(ERRORS, code) ? (code as ErrorCode) : "internal_error";

function shownDetails({ retryAfterS, faults, browserMs }: JobError["details"]) {
  return {
    ...(retryAfterS !== undefined && { retryAfterS }),
    ...(faults && { faults }),
    ...(browserMs !== undefined && { browserMs }),
  };
}

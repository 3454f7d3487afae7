/**
 * The contract of an account's rendering jobs: calls that continue without their client. The key is the account's id.
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
  /** A name of `ERRORS`; an older version may have had others. */
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
  /** Status that the page's site answered. */
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

/** The bytes that an account may have in the store. */
const BytesMax = z.int().min(0);
/** A job as its worker names it, and the id of the worker's task. */
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
    /** Checks whether a job with such a request may be created now. Refuses as `create` does. */
    admit: { input: z.object({ ...newJob, hasWebhook: z.boolean() }), reply: Nothing },
    /** Creates a job whose request is stored. A repeated call returns the first job. */
    create: {
      input: z.object({
        ...newJob,
        id: Id,
        call: RenderCall,
        cacheTtlS: z.number().min(0),
        /** The key of the stored request, sealed: see request-key.ts. */
        requestKey: z.string().max(SEALED_CHARS_MAX).optional(),
        webhook: z
          .object({
            url: z.string().max(JOB_WEBHOOK_URL_CHARS_MAX),
            /** Sealed for OUTGOING_SECRET of the account. */
            secret: z.string().max(SEALED_CHARS_MAX),
          })
          .optional(),
      }),
      reply: RenderJob.extend({
        /** Present if the job has its request's key. A host of an older version drops the key. */
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
          /** As `create` received it; absent if the request is stored as it came, by an older version. */
          requestKey: z.string().max(SEALED_CHARS_MAX).optional(),
        }),
      ]),
    },
    /** From a worker: checks whether its task should continue. */
    check: { input: z.object(ofTask), reply: Wanted },
    /** From a worker, before it stores these bytes of a result. Refuses past the account's bytes. */
    reserve: {
      input: z.object({ ...ofTask, bytes: z.int().min(0), bytesMax: BytesMax }),
      reply: Nothing,
    },
    /** From a worker: the job's result is stored, or its task has failed at every try. */
    ended: {
      input: z.object({
        ...ofTask,
        result: JobResult.optional(),
        error: JobError.optional(),
      }),
    },
    /** From the queue of webhooks: the job's webhook has arrived, or all its tries have failed. */
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

/** The refusal that a job has failed with. */
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

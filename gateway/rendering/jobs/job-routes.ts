/** Routes that list, show and cancel rendering jobs, and answer with their results. */
import type { Response } from "express";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { AccountPath } from "../../../schemas/account/http/accounts.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { nothing } from "../../../schemas/http/nothing.ts";
import {
  JobPath,
  JobsQuery,
  WireJob,
  wireJob,
} from "../../../schemas/rendering/http/render-jobs.ts";
import { PICTURE_MEDIA_TYPES } from "../../../schemas/rendering/http/screenshot.ts";
import { refusalOfJob, renderJobs } from "../../../schemas/rendering/render-jobs.ts";
import { Id } from "../../../schemas/values.ts";
import { blameCursor } from "../../http/blame-cursor.ts";
import { defineRoute, type Route, type RouteRequest, type Tag } from "../../http/route.ts";
import { OF_ONE_CALL, REFUSALS, writeRendered } from "../write-rendered.ts";
import type { JobsParts } from "./start-job.ts";

export const RENDERING_TAG: Tag = {
  name: "Rendering",
  description: "PDFs, screenshots and other results of a page in a browser",
};

const JOBS = "/accounts/{account_id}/browser-rendering/jobs";
/** A second path of the same routes, with the newer product name. */
const ALIAS = "/accounts/{account_id}/browser-run/jobs";

const LIST_JOBS = {
  method: "get",
  path: JOBS,
  alias: ALIAS,
  id: "listJobs",
  tag: RENDERING_TAG,
  summary: "List the account's jobs of the last 24 hours, newest first",
  permissions: ["browser-rendering.read"],
  parameters: AccountPath,
  query: JobsQuery,
  answer: { result: WireJob.array(), paged: "cursor" },
} as const;

const OF_JOB = {
  tag: RENDERING_TAG,
  parameters: JobPath,
  query: nothing,
} as const;

const GET_JOB = {
  ...OF_JOB,
  method: "get",
  path: `${JOBS}/{job_id}`,
  alias: `${ALIAS}/{job_id}`,
  id: "getJob",
  summary: "Get a job's status",
  permissions: ["browser-rendering.read"],
  answer: { result: WireJob },
} as const;

const CANCEL_JOB = {
  ...OF_JOB,
  method: "delete",
  path: `${JOBS}/{job_id}`,
  alias: `${ALIAS}/{job_id}`,
  id: "cancelJob",
  summary: "Cancel a job that has not ended; its open page is closed",
  permissions: ["browser-rendering.write"],
  refusals: ["conflict"],
  answer: { result: WireJob },
} as const;

const GET_JOB_RESULT = {
  ...OF_JOB,
  method: "get",
  path: `${JOBS}/{job_id}/result`,
  alias: `${ALIAS}/{job_id}/result`,
  id: "getJobResult",
  summary: "Get a job's result, as the call itself would have returned it",
  permissions: ["browser-rendering.read"],
  refusals: ["conflict", "limit_reached", "storage_full", ...REFUSALS, ...OF_ONE_CALL],
  rendering: true,
  answer: {
    mediaType: ["application/pdf", ...PICTURE_MEDIA_TYPES, "application/json"],
    description:
      "The result, with the media type of its call; a failed job has the status and the error of its call, and one without a result yet 409",
  },
} as const;

interface JobRouteParts {
  actors: ActorClient;
  jobs: JobsParts;
}

export function jobRoutes(parts: JobRouteParts): Route[] {
  return [
    defineRoute({ ...LIST_JOBS, handle: list(parts) }),
    defineRoute({ ...GET_JOB, handle: get(parts) }),
    defineRoute({ ...CANCEL_JOB, handle: cancel(parts) }),
    defineRoute({ ...GET_JOB_RESULT, handle: readResult(parts) }),
  ];
}

function list({ actors }: JobRouteParts) {
  return async ({ caller, query, signal }: RouteRequest<unknown, JobsQuery>) => {
    const { cursor, status, limit: count } = query;
    const page = { count, ...(cursor !== undefined && { cursor }), ...(status && { status }) };
    const listed = await actors
      .call(renderJobs, caller.accountId, "list", page, { signal })
      .catch(blameCursor);
    const result = listed.jobs.map(wireJob);
    const next = listed.cursor === undefined ? {} : { cursor: listed.cursor };
    return { result, resultInfo: { count: result.length, ...next } };
  };
}

function get({ actors }: JobRouteParts) {
  return async ({ caller, parameters, signal }: RouteRequest<JobPath>) => {
    const job = { id: idOf(parameters) };
    const found = await actors.call(renderJobs, caller.accountId, "get", job, { signal });
    return { result: wireJob(found) };
  };
}

function cancel({ actors }: JobRouteParts) {
  return async ({ caller, parameters, signal }: RouteRequest<JobPath>) => {
    const job = { id: idOf(parameters) };
    const found = await actors.call(renderJobs, caller.accountId, "cancel", job, { signal });
    return { result: wireJob(found) };
  };
}

function readResult({ actors, jobs }: JobRouteParts) {
  return async ({ caller, parameters, signal }: RouteRequest<JobPath>, response: Response) => {
    const asked = { id: idOf(parameters) };
    const job = await actors.call(renderJobs, caller.accountId, "get", asked, { signal });
    const { error, result, createdAt, startedAt = createdAt } = job;
    if (error) throw refusalOfJob(error);
    if (!result) throw new ActorError("conflict", `Cannot read result: the job is ${job.status}`);
    const stored = await jobs.objects.get(result.object, signal);
    // The result may have expired since, or an operator has removed it.
    if (!stored) throw new ActorError("not_found", "Cannot read result: it is no longer stored");
    const { mediaType, browserMs, targetStatus: status } = result;
    const { bytes, chunks } = stored;
    const queuedMs = startedAt - createdAt;
    await writeRendered(
      { mediaType, browserMs, queuedMs, bytes, status, chunks },
      response,
      signal,
    );
  };
}

/** Parses a job id. Text in any other form cannot be the id of a job, so it is refused. */
function idOf({ job_id }: JobPath): string {
  const { success, data } = Id.safeParse(job_id);
  if (success) return data;
  throw new ActorError("not_found", "Cannot find job: unknown here, another account's, or expired");
}

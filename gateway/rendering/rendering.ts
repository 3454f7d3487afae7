/**
 * The REST routes for rendering. They take pages, and stream documents, pictures and text from a browser worker to
 * the client.
 */
import type { Response } from "express";
import type { ActorClient } from "../../actors/runtime/calls/actor-client.ts";
import { AccountPath, WireUsage } from "../../schemas/account/http/accounts.ts";
import { nothing } from "../../schemas/http/nothing.ts";
import { RENDER_BODY_BYTES_MAX, TASK_RUN_MS_MAX } from "../../schemas/limits.ts";
import { browserTime } from "../../schemas/rendering/browser-time.ts";
import {
  type ContentRequest,
  PAGE_CALLS,
  type PageCall,
  type PageCallName,
  PageMeta,
} from "../../schemas/rendering/http/page-calls.ts";
import { PageReport } from "../../schemas/rendering/http/page-report.ts";
import { PdfRequest } from "../../schemas/rendering/http/pdf.ts";
import {
  type AnswerForm,
  answerFormOf,
  inForm as formed,
} from "../../schemas/rendering/http/render-calls.ts";
import { RenderQuery } from "../../schemas/rendering/http/rendering.ts";
import { PICTURE_MEDIA_TYPES, ScreenshotRequest } from "../../schemas/rendering/http/screenshot.ts";
import { render } from "../../schemas/rendering/render.ts";
import { defineRoute, type Route, type RouteRequest } from "../http/route.ts";
import { RENDERING_TAG } from "./jobs/job-routes.ts";
import { type JobsParts, orAsJob } from "./jobs/start-job.ts";
import { REFUSALS, type Rendered, writeRendered } from "./write-rendered.ts";

const RENDERING = "/accounts/{account_id}/browser-rendering";
/** A second path of the same routes, with the newer product name. */
const ALIAS = "/accounts/{account_id}/browser-run";

/** Properties that are common to all routes that render a page. */
const RENDERS = {
  method: "post",
  tag: RENDERING_TAG,
  takesFiles: true,
  permissions: ["browser-rendering.write"],
  parameters: AccountPath,
  query: RenderQuery,
  rendering: true,
  mayBeJob: true,
} as const;
/** Refusals of a call that may run as a job. */
const CALL_REFUSALS = [...REFUSALS, "limit_reached", "storage_full"] as const;

/** The media type of an answer with a report. */
const JSON_TYPE = "application/json";

const RENDER_PDF = {
  ...RENDERS,
  path: `${RENDERING}/pdf`,
  alias: `${ALIAS}/pdf`,
  id: "renderPdf",
  summary: "Print a page as a PDF",
  body: { schema: PdfRequest, bytesMax: RENDER_BODY_BYTES_MAX },
  refusals: CALL_REFUSALS,
  answer: {
    mediaType: ["application/pdf", JSON_TYPE],
    description: "The PDF; with report, JSON whose result is the PDF in base64, and the report",
  },
} as const;

const TAKE_SCREENSHOT = {
  ...RENDERS,
  path: `${RENDERING}/screenshot`,
  alias: `${ALIAS}/screenshot`,
  id: "takeScreenshot",
  summary: "Capture a page, or a part of it, as a picture",
  body: { schema: ScreenshotRequest, bytesMax: RENDER_BODY_BYTES_MAX },
  refusals: [...CALL_REFUSALS, "element_not_found"],
  answer: {
    mediaType: [...PICTURE_MEDIA_TYPES, JSON_TYPE],
    description:
      "The picture; with report, JSON whose result is the picture in base64, and the report",
  },
} as const;

const GET_USAGE = {
  method: "get",
  path: `${RENDERING}/usage`,
  alias: `${ALIAS}/usage`,
  id: "getUsage",
  tag: RENDERING_TAG,
  summary: "List the browser time used on each UTC day",
  permissions: ["browser-rendering.read", "account.read"],
  parameters: AccountPath,
  query: nothing,
  answer: { result: WireUsage },
} as const;

const PAGE_CALL_NAMES = Object.keys(PAGE_CALLS) as PageCallName[];

interface RenderingParts {
  actors: ActorClient;
  /** Limit of each account's browser time per day in milliseconds; 0 means no limit. */
  browserMsPerDay: number;
  now: () => number;
  /** The dependencies of jobs. Without them no call becomes a job. */
  jobs?: JobsParts | undefined;
}

/** Returns the REST routes that render pages, and the route that shows the browser time of an account. */
export function renderingRoutes(
  actors: ActorClient,
  settings: Omit<RenderingParts, "actors">,
): Route[] {
  const parts = { actors, ...settings };
  return [
    defineRoute({ ...RENDER_PDF, handle: orAsJob("pdf", parts, renderPdf(parts)) }),
    defineRoute({
      ...TAKE_SCREENSHOT,
      handle: orAsJob("screenshot", parts, takeScreenshot(parts)),
    }),
    ...PAGE_CALL_NAMES.map((name) => pageCallRoute(name, parts)),
    defineRoute({ ...GET_USAGE, handle: getUsage(parts) }),
  ];
}

function renderPdf(parts: RenderingParts) {
  return async (asked: RouteRequest<unknown, RenderQuery, PdfRequest>, response: Response) => {
    const { caller, body, signal } = asked;
    const { accountId } = caller;
    const task = { ...(await admit(parts, asked)), parameters: body };
    const limits = { deadlineMs: TASK_RUN_MS_MAX, signal };
    const { reply, ...run } = await parts.actors.run(render, accountId, "pdf", task, limits);
    const answer = { ...reply, ...run };
    await writeRendered(inForm(answerFormOf("pdf", body), answer), response, signal);
  };
}

function takeScreenshot(parts: RenderingParts) {
  return async (
    asked: RouteRequest<unknown, RenderQuery, ScreenshotRequest>,
    response: Response,
  ) => {
    const { caller, body, signal } = asked;
    const { accountId } = caller;
    const task = { ...(await admit(parts, asked)), parameters: body };
    const limits = { deadlineMs: TASK_RUN_MS_MAX, signal };
    const { reply, ...run } = await parts.actors.run(render, accountId, "screenshot", task, limits);
    const answer = { ...reply, ...run };
    await writeRendered(inForm(answerFormOf("screenshot", body), answer), response, signal);
  };
}

/** The route of a call that answers JSON. */
function pageCallRoute(name: PageCallName, parts: RenderingParts): Route {
  const { id, summary, request, result, hasMeta }: PageCall = PAGE_CALLS[name];
  return defineRoute({
    ...RENDERS,
    path: `${RENDERING}/${name}`,
    alias: `${ALIAS}/${name}`,
    ...{ id, summary },
    body: { schema: request, bytesMax: RENDER_BODY_BYTES_MAX },
    refusals: name === "json" ? [...CALL_REFUSALS, "json_not_extracted"] : CALL_REFUSALS,
    answer: {
      streamed: result,
      beside: { ...(hasMeta && { meta: PageMeta }), report: PageReport.optional() },
    },
    handle: orAsJob(name, parts, async (asked, response) => {
      const { caller, signal } = asked;
      const { accountId } = caller;
      // Safe: the route has checked the body with the schema of this call.
      const parameters = asked.body as ContentRequest;
      const task = { ...(await admit(parts, asked)), parameters };
      const limits = { deadlineMs: TASK_RUN_MS_MAX, signal };
      const message = name as "content";
      const { reply, ...run } = await parts.actors.run(render, accountId, message, task, limits);
      const answer = { ...reply, ...run };
      await writeRendered(inForm(answerFormOf(name, parameters), answer), response, signal);
    }),
  });
}

/** Adds the text of the response form of a call around the bytes of a worker. */
function inForm(form: AnswerForm, answer: Omit<Rendered, "mediaType">): Rendered {
  const { bytes, chunks } = answer;
  const length = bytes === null ? null : form.before.length + bytes + form.after.length;
  return { ...answer, mediaType: form.mediaType, bytes: length, chunks: formed(form, chunks) };
}

function getUsage({ actors, browserMsPerDay }: RenderingParts) {
  return async ({ caller }: RouteRequest) => {
    const { today, resetsAt, days } = await actors.call(
      browserTime,
      caller.accountId,
      "getUsage",
      {},
    );
    return {
      result: {
        date: today.date,
        browser_ms_used: today.ms,
        browser_ms_limit: browserMsPerDay === 0 ? null : browserMsPerDay,
        resets_at: new Date(resetsAt).toISOString(),
        days: days.map(({ date, ms, tasks }) => ({ date, browser_ms_used: ms, tasks })),
      },
    };
  };
}

/** Checks that the account has browser time left. Returns the fields that all tasks share. */
async function admit(
  { actors, browserMsPerDay, now }: RenderingParts,
  { caller: { accountId }, query, signal }: RouteRequest<unknown, RenderQuery>,
) {
  const limit = { limitMs: browserMsPerDay };
  await actors.call(browserTime, accountId, "admit", limit, { signal });
  const deadlineAt = now() + TASK_RUN_MS_MAX;
  return { account: accountId, deadlineAt, cacheTtlS: query.cacheTTL };
}

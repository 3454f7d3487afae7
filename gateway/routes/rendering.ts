/** Rendering: pages in, documents out, streamed as they come from a browser worker. */
import type { Response } from "express";
import type { ActorClient } from "../../actors/runtime/actor-client.ts";
import { account } from "../../schemas/account.ts";
import { ERRORS, type ErrorCode } from "../../schemas/errors.ts";
import { AccountPath, WireUsage } from "../../schemas/http/accounts.ts";
import { nothing } from "../../schemas/http/nothing.ts";
import { PdfRequest } from "../../schemas/http/pdf.ts";
import { RenderQuery } from "../../schemas/http/rendering.ts";
import { RENDER_BODY_BYTES_MAX, TASK_RUN_MS_MAX } from "../../schemas/limits.ts";
import { render } from "../../schemas/render.ts";
import { type Asked, defineRoute, type Route } from "../route.ts";
import { writeAnswer } from "../write-answer.ts";

const RENDERING = "/accounts/{account_id}/browser-rendering";
/** The same under a younger name. */
const ALIAS = "/accounts/{account_id}/browser-run";

/** What the target did, or the browser. */
const TARGET_FAILURES = Object.keys(ERRORS).filter(
  (name): name is ErrorCode => ERRORS[name as ErrorCode].status === 422,
);

export function renderingRoutes(
  actors: ActorClient,
  { browserMsPerDay, now }: { browserMsPerDay: number; now: () => number },
): Route[] {
  return [
    defineRoute({
      method: "post",
      path: `${RENDERING}/pdf`,
      alias: `${ALIAS}/pdf`,
      id: "renderPdf",
      tag: "Rendering",
      summary: "Print a page as a PDF",
      permissions: ["browser-rendering.write"],
      parameters: AccountPath,
      query: RenderQuery,
      body: { schema: PdfRequest, bytesMax: RENDER_BODY_BYTES_MAX },
      refusals: ["browser_time_exceeded", "queue_full", ...TARGET_FAILURES],
      rendering: true,
      answer: { mediaType: "application/pdf", description: "The PDF" },
      handle: renderPdf,
    }),
    defineRoute({
      method: "get",
      path: `${RENDERING}/usage`,
      alias: `${ALIAS}/usage`,
      id: "getUsage",
      tag: "Rendering",
      summary: "Browser time used, by UTC day",
      permissions: ["browser-rendering.read", "account.read"],
      parameters: AccountPath,
      query: nothing,
      answer: { result: WireUsage },
      handle: getUsage,
    }),
  ];

  async function renderPdf(
    { caller, body, signal }: Asked<unknown, unknown, PdfRequest>,
    response: Response,
  ) {
    const { accountId } = caller;
    const limit = { limitMs: browserMsPerDay };
    await actors.call(account, accountId, "admitRendering", limit, { signal });
    const deadlineMs = TASK_RUN_MS_MAX;
    const task = { account: accountId, parameters: body, deadlineAt: now() + deadlineMs };
    const { reply, chunks } = await actors.run(render, accountId, "pdf", task, {
      deadlineMs,
      signal,
    });
    response.set({
      "Content-Type": "application/pdf",
      "X-Browser-Ms-Used": String(reply.browserMs),
    });
    // Of a large PDF the end is not written yet when its first bytes go out.
    if (reply.bytes !== null) response.set("Content-Length", String(reply.bytes));
    await writeAnswer(chunks, response, { bytes: reply.bytes, signal });
  }

  async function getUsage({ caller }: Asked) {
    const { today, resetsAt, days } = await actors.call(account, caller.accountId, "getUsage", {});
    return {
      result: {
        date: today.date,
        browser_ms_used: today.ms,
        browser_ms_limit: browserMsPerDay === 0 ? null : browserMsPerDay,
        resets_at: new Date(resetsAt).toISOString(),
        days: days.map(({ date, ms, tasks }) => ({ date, browser_ms_used: ms, tasks })),
      },
    };
  }
}

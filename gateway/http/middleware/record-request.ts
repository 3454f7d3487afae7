/** Records a request, and runs it so that its steps, messages and log lines carry its id. */
import { randomBytes } from "node:crypto";
import type { RequestHandler } from "express";
import type { RequestStep } from "../../../schemas/request-step.ts";
import { statusOf } from "../answered-status.ts";
import { localsOf } from "../locals.ts";
import { pathOf } from "./request-log.ts";

export interface RequestTraces {
  /** Runs `work` and everything that it starts as a part of this request. */
  inRequest<T>(run: string, requestId: string, work: () => T): T;
  record(step: RequestStep): void;
}

/** Bytes of the random part of a run's name. One process has one such part, because random bytes cost a system call. */
const RUN_BYTES = 6;
const GIT_ACCOUNT = /^\/git\/(?<account>[0-9a-f]{32})\//;

export function recordRequest({ inRequest, record }: RequestTraces): RequestHandler {
  const runsOfProcess = randomBytes(RUN_BYTES).toString("hex");
  let runs = 0;
  return (request, response, next) => {
    const startedAt = performance.now();
    const at = Date.now();
    runs += 1;
    const run = `${runsOfProcess}${runs.toString(36)}`;
    const { requestId } = localsOf(response);
    response.once("close", () => {
      const { route, caller, appTarget, refusal } = localsOf(response);
      const error = refusal ?? (response.writableFinished ? undefined : "cancelled");
      const path = pathOf(request.originalUrl);
      const account =
        caller?.accountId ?? appTarget?.accountId ?? GIT_ACCOUNT.exec(path)?.groups?.account;
      // The path of a request to an app is private to the app, so it is not recorded.
      const name = route?.path ?? (appTarget ? `app ${appTarget.app}` : placeOf(path));
      record({
        ...{
          run,
          request: requestId,
          at,
          ms: Math.round((performance.now() - startedAt) * 100) / 100,
          way: "request",
        },
        ...{ name: `${request.method} ${name}`, status: statusOf(response) },
        ...(error !== undefined && { error }),
        ...(account !== undefined && { account }),
      });
    });
    inRequest(run, requestId, next);
  };
}

/**
 * Returns only the first segment of a path, because paths of pages may contain secrets, such as the address of a live
 * view.
 */
const placeOf = (path: string) => `/${path.split("/")[1] ?? ""}`;

/** REST routes that show the steps of one request to its account and to administrators. */
import type { z } from "zod";
import { ActorError } from "../../schemas/errors.ts";
import { nothing } from "../../schemas/http/nothing.ts";
import {
  AccountRequestPath,
  RequestPath,
  type WireStep,
  WireTrace,
} from "../../schemas/http/operations.ts";
import { type RequestStep, STEPS_KEPT, STEPS_SHOWN_MAX } from "../../schemas/request-step.ts";
import { INSTALLATION_TAG } from "../http/installation-tag.ts";
import { defineRoute, type Route, type RouteRequest, type Tag } from "../http/route.ts";
import type { Operations } from "./operations.ts";

const REQUESTS_TAG: Tag = {
  name: "Requests",
  description: "The way of one request through the platform",
};

const TRACE_REQUEST = {
  tag: REQUESTS_TAG,
  method: "get",
  path: "/accounts/{account_id}/requests/{request_id}",
  id: "traceRequest",
  summary: "Trace one of the account's latest requests, with times",
  permissions: ["account.read"],
  parameters: AccountRequestPath,
  query: nothing,
  answer: { result: WireTrace },
} as const;

const TRACE_ANY_REQUEST = {
  tag: INSTALLATION_TAG,
  method: "get",
  path: "/installation/requests/{request_id}",
  id: "traceAnyRequest",
  summary:
    "Trace any request, with keys and log lines (needs an administrator's session; tokens are refused)",
  isOfAdministrators: true,
  parameters: RequestPath,
  query: nothing,
  answer: { result: WireTrace },
} as const;

/** The REST routes of requests. */
export function traceRoutes({ steps }: Pick<Operations, "steps">): Route[] {
  return [
    defineRoute({
      ...TRACE_REQUEST,
      async handle({ parameters, signal }: RouteRequest<z.output<typeof AccountRequestPath>>) {
        const { account_id: accountId, request_id: id } = parameters;
        return shown(id, ofAccount(await steps(id, signal), accountId));
      },
    }),
    defineRoute({
      ...TRACE_ANY_REQUEST,
      async handle({
        parameters: { request_id: id },
        signal,
      }: RouteRequest<z.output<typeof RequestPath>>) {
        return shown(id, await steps(id, signal));
      },
    }),
  ];
}

/**
 * Returns the steps that members of an account may see. Clients choose request ids, so another account may have used
 * the same id. So only steps of this account's requests are returned. Log lines are only for operators, and so are
 * keys that do not contain the account's id, except the ids of crawls.
 */
function ofAccount(steps: readonly RequestStep[], accountId: string): RequestStep[] {
  const runs = new Set(steps.flatMap(({ account, run }) => (account === accountId ? [run] : [])));
  return steps
    .filter(({ run, way }) => runs.has(run) && way !== "log")
    .map(({ key, ...step }) => {
      const isShown = key?.includes(accountId) || step.name.startsWith("crawl-job ");
      return isShown && key !== undefined ? { ...step, key } : step;
    });
}

function shown(id: string, steps: readonly RequestStep[]) {
  if (steps.length === 0) {
    const text = `Cannot find request "${id}": none under this id was made here; steps are kept ${STEPS_KEPT}`;
    throw new ActorError("not_found", text);
  }
  return { result: { request_id: id, steps: steps.slice(-STEPS_SHOWN_MAX).map(wireStep) } };
}

const wireStep = ({ at, ms, way, name, key, error, level, status }: RequestStep): WireStep => ({
  at: new Date(at).toISOString(),
  ms: Math.round(ms * 100) / 100,
  ...{ way, name },
  key: key ?? null,
  error: error ?? null,
  level: level ?? null,
  status: status ?? null,
});

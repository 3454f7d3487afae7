/** One request of a git or git-lfs client. */
import type { Request, Response } from "express";
import type { Logger } from "pino";
import { clientSignal } from "../../http/client-signal.ts";
import { localsOf } from "../../http/locals.ts";
import type { Route } from "../../http/route.ts";

/** The two services of git: fetches are served by the first, pushes by the second. */
export type Service = "git-upload-pack" | "git-receive-pack";

export interface Exchange {
  request: Request;
  response: Response;
  /** Aborts when the client leaves. */
  signal: AbortSignal;
  logger: Logger;
}

export function exchangeOf(request: Request, response: Response): Exchange {
  const signal = clientSignal(response);
  return { request, response, signal, logger: localsOf(response).logger };
}

/** Names the request in logs and metrics: paths of a closed list. */
export function nameRoute(response: Response, id: string, end: string): void {
  const path = `/git/{account_id}/{namespace}/{name}.git/${end}`;
  // Outside /v4, log and metrics read only these two fields of a route.
  localsOf(response).route = { id, path } as Route;
}

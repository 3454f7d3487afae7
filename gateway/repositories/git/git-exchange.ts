/** One request of a git or git-lfs client. */
import type { Request, Response } from "express";
import type { Logger } from "pino";
import { clientSignal } from "../../http/client-signal.ts";
import { localsOf } from "../../http/locals.ts";
import type { Route } from "../../http/route.ts";

/** The two services of git: `git-upload-pack` serves fetches, `git-receive-pack` serves pushes. */
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

/**
 * Sets the path that logs and metrics show for the request. The path contains placeholders, so that only few
 * different paths exist.
 */
export function nameRoute(response: Response, id: string, end: string): void {
  const path = `/git/{account_id}/{namespace}/{name}.git/${end}`;
  // Outside /v4, logs and metrics read only these two fields of a route.
  localsOf(response).route = { id, path } as Route;
}

/** Logs every finished request with a fixed list of fields. No header, query or body reaches the log. */
import type { RequestHandler } from "express";
import { statusOf } from "../answered-status.ts";
import { localsOf } from "../locals.ts";

/** Limits the logged characters of a path that matches no route. Paths of our routes have at most about 150. */
export const LOGGED_PATH_CHARS_MAX = 200;

export const requestLog: RequestHandler = (request, response, next) => {
  const startedAt = performance.now();
  response.once("close", () => {
    const { logger, route, caller, refusal } = localsOf(response);
    const finished = response.writableFinished;
    logger.info(
      {
        method: request.method,
        route: route?.path,
        // If no route matches a refused request, its path is logged, because no other field identifies the address.
        path:
          route === undefined && refusal !== undefined ? pathOf(request.originalUrl) : undefined,
        status: statusOf(response),
        code: refusal ?? (finished ? undefined : "cancelled"),
        durationMs: Math.round(performance.now() - startedAt),
        finished,
        account: caller?.accountId,
        token: caller?.tokenId,
        client: request.ip,
      },
      "request",
    );
  });
  next();
};

/** The path without its query, up to the limit of the log. */
export function pathOf(url: string): string {
  const [path = ""] = url.split("?", 1);
  return path.slice(0, LOGGED_PATH_CHARS_MAX);
}

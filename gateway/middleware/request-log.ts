/** Logs every request once it is over, in a closed list of fields: no header, query or body ever gets into the log. */
import type { RequestHandler } from "express";
import { localsOf } from "../locals.ts";

export const requestLog: RequestHandler = (request, response, next) => {
  const startedAt = performance.now();
  response.once("close", () => {
    const { logger, route, caller } = localsOf(response);
    logger.info(
      {
        method: request.method,
        // The path as the client sent it could hold anything; the route's own is from a closed list.
        route: route?.path,
        status: response.statusCode,
        durationMs: Math.round(performance.now() - startedAt),
        finished: response.writableFinished,
        account: caller?.accountId,
        token: caller?.tokenId,
        client: request.ip,
      },
      "request",
    );
  });
  next();
};

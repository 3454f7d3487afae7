/**
 * Gives every request an id: the valid X-Request-Id of the client or the proxy, or a new id. Log lines and answers
 * contain it.
 */
import { randomUUID } from "node:crypto";
import type { RequestHandler } from "express";
import type { Logger } from "pino";
import { localsOf } from "../locals.ts";

const SANE = /^[\w.:-]{1,128}$/;

export function requestId(logger: Logger): RequestHandler {
  return (request, response, next) => {
    const header = request.get("x-request-id");
    const id = header !== undefined && SANE.test(header) ? header : randomUUID();
    Object.assign(localsOf(response), { requestId: id, logger: logger.child({ requestId: id }) });
    response.set("X-Request-Id", id);
    next();
  };
}

/** Answers requests whose method the path does not support: OPTIONS with the allowed methods, all others with 405. */
import type { RequestHandler } from "express";
import { ActorError } from "../../../schemas/errors.ts";

/** `methods` are in upper case. HEAD is allowed where GET is. */
export function methodNotAllowed(methods: readonly string[]): RequestHandler {
  const head = methods.includes("GET") ? ["HEAD"] : [];
  const allow = [...methods, ...head, "OPTIONS"].toSorted().join(", ");
  return (request, response) => {
    response.set("Allow", allow);
    if (request.method === "OPTIONS") {
      response.status(204).end();
      return;
    }
    throw new ActorError(
      "method_not_allowed",
      `Cannot ${request.method} this path: expected one of ${allow}`,
    );
  };
}

/** The one place where an error becomes an HTTP answer. */
import type { ErrorRequestHandler } from "express";
import { ActorError, ERRORS } from "../../../schemas/errors.ts";
import type { WireError } from "../../../schemas/http/envelope.ts";
import { failure } from "../envelope.ts";
import { localsOf } from "../locals.ts";
import { setRetryAfter } from "../retry-after.ts";
import type { RefusalWording } from "../route.ts";

const OWN_WORDING: RefusalWording = {
  code: (name) => ERRORS[name].code,
  pointer: (pointer) => pointer,
};

export const handleError: ErrorRequestHandler = (error: unknown, _request, response, _next) => {
  const locals = localsOf(response);
  const { logger, route } = locals;
  const refusal = refusalOf(error);
  locals.refusal = refusal?.code ?? "internal_error";
  if (!refusal) logger.error({ err: error, route: route?.path }, "request failed");
  if (response.headersSent) {
    // The status was sent already. Only a truncated body can tell the client that the answer is incomplete.
    response.destroy();
    return;
  }
  // Removes the headers that the handler had set for the answer that failed.
  for (const name of ["Content-Type", "Content-Length"]) response.removeHeader(name);
  const { code, message, details } =
    refusal ??
    new ActorError(
      "internal_error",
      "Cannot answer: internal error; its log line has the id of this request",
    );
  const { status } = ERRORS[code];
  setRetryAfter(response, status, details.retryAfterS);
  if (route?.rendering && details.browserMs !== undefined) {
    response.set("X-Browser-Ms-Used", String(details.browserMs));
  }
  const reported = refusal ?? new ActorError(code, message);
  response.status(status).json(failure(wireErrors(reported, route?.wording)));
};

function refusalOf(error: unknown): ActorError | undefined {
  if (error instanceof Error && "code" in error && error.code === "ENOSPC") {
    return new ActorError(
      "storage_full",
      "Cannot store: the disk of this instance is full; try again later",
    );
  }
  // A refusal is sent to the client. Almost any other error is a fault of the platform: its message is only logged.
  if (error instanceof ActorError && error.code !== "internal_error") return error;
  // Express throws this when it cannot decode a path's percent-encoding.
  if (error instanceof URIError) {
    return new ActorError("invalid_request", "Cannot accept path: its percent-encoding is broken");
  }
  return undefined;
}

function wireErrors(
  { code, message, details }: ActorError,
  wording: RefusalWording = OWN_WORDING,
): [WireError, ...WireError[]] {
  const [first, ...others] = (details.faults ?? []).map((fault) => {
    const pointer = wording.pointer(fault.pointer);
    const message = acceptable(fault).replace(fault.pointer, () => pointer);
    return { code: wording.code(code, pointer), message, source: { pointer } };
  });
  return first ? [first, ...others] : [{ code: wording.code(code, ""), message }];
}

/** Completes the messages of actors and workers, so that clients read the same form for every field. */
function acceptable({ pointer, message }: { pointer: string; message: string }): string {
  if (message.startsWith("Cannot accept ")) return message;
  return `Cannot accept ${pointer || "body"}: ${message}`;
}

/** Reads requests and sends responses of Git LFS as JSON (docs/api of git-lfs). */
import type { ErrorRequestHandler, Request, Response } from "express";
import { z } from "zod";
import { ActorError, ERRORS } from "../../../schemas/errors.ts";
import { localsOf } from "../../http/locals.ts";
import { readJson } from "../../http/read-json.ts";
import { wholeBody } from "../git/git-body.ts";

/** Limit for the bytes of a request's body. A batch has some 110 bytes for each object. */
export const LFS_QUESTION_BYTES_MAX = 64 * 1024;

const TYPE = "application/vnd.git-lfs+json";

/** Reads a body as JSON. Refuses other media types. */
export async function readLfsRequest(request: Request): Promise<unknown> {
  const type = request.get("content-type")?.split(";", 1)[0]?.trim().toLowerCase();
  if (type !== TYPE && type !== "application/json") {
    throw new ActorError("unsupported_media_type", `Cannot read body: expected ${TYPE}`);
  }
  return readJson(await wholeBody(request, LFS_QUESTION_BYTES_MAX));
}

export function sendLfs(response: Response, status: number, body: object): void {
  response.status(status).set("Cache-Control", "no-store");
  response.setHeader("Content-Type", TYPE);
  response.end(JSON.stringify(body));
}

/** Sends errors in the form that git-lfs reads (docs/api/batch.md of git-lfs, "Response Errors"). */
export const sendLfsError: ErrorRequestHandler = (error: unknown, _request, response, _next) => {
  const locals = localsOf(response);
  const known = refusalOf(error);
  locals.refusal = known.code;
  if (known.code === "internal_error") locals.logger.error({ err: error }, "request failed");
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const { status } = ERRORS[known.code];
  if (status === 401) {
    response.set({
      "LFS-Authenticate": 'Basic realm="git"',
      "WWW-Authenticate": 'Basic realm="git", charset="UTF-8"',
    });
  }
  if (status === 429 || status === 503) {
    response.set("Retry-After", String(known.details.retryAfterS ?? 1));
  }
  sendLfs(response, status, { message: known.message, request_id: locals.requestId });
};

function refusalOf(error: unknown): ActorError {
  if (error instanceof z.ZodError) {
    const [issue] = error.issues;
    const text = `Cannot accept /${issue?.path.join("/") ?? ""}: ${issue?.message ?? "wrong"}`;
    return new ActorError("invalid_request", text);
  }
  if (error instanceof ActorError && error.code !== "internal_error") return error;
  return new ActorError("internal_error", "A fault on our side; try again later");
}

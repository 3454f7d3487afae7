/** Answers of calls that render a page and of jobs that did: the header fields that all share, and the refusals. */
import type { Response } from "express";
import { ERRORS, type ErrorCode } from "../../schemas/errors.ts";
import { writeAnswer } from "../http/write-answer.ts";

export const OF_ONE_CALL = ["element_not_found", "json_not_extracted"] as const;
/**
 * Errors of the target or the browser: codes from 5000 to 6999, as in the public API. Other errors with status 422
 * are git's.
 */
const TARGET_FAILURES = Object.keys(ERRORS).filter((name): name is ErrorCode => {
  const { status, code } = ERRORS[name as ErrorCode];
  return (
    status === 422 && code >= 5_000 && code < 7_000 && !OF_ONE_CALL.some((one) => one === name)
  );
});

export const REFUSALS = ["browser_time_exceeded", "queue_full", ...TARGET_FAILURES] as const;

export interface Rendered {
  mediaType: string;
  browserMs: number;
  queuedMs: number;
  bytes: number | null;
  status?: number | undefined;
  chunks: AsyncIterable<Uint8Array>;
}

/** Writes an answer with the headers of all calls. */
export async function writeRendered(
  { mediaType, browserMs, queuedMs, bytes, status, chunks }: Rendered,
  response: Response,
  signal: AbortSignal,
) {
  response.set({
    "Content-Type": mediaType,
    "X-Browser-Ms-Used": String(browserMs),
    "X-Queued-Ms": String(queuedMs),
    ...(status !== undefined && { "X-Target-Status": String(status) }),
  });
  // The first bytes of a large PDF leave before its end is written.
  if (bytes !== null) response.set("Content-Length", String(bytes));
  await writeAnswer(chunks, response, { bytes, signal });
}

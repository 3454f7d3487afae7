/**
 * Writes responses of rendering calls and of finished jobs: the header fields that all of them share, and the
 * possible refusals.
 */
import type { Response } from "express";
import { ERRORS, type ErrorCode } from "../../schemas/errors.ts";
import { writeAnswer } from "../http/write-answer.ts";

export const OF_ONE_CALL = ["element_not_found", "json_not_extracted"] as const;
/**
 * Error names for failures of the target or the browser that any call can have: codes from 5000 to 6999, as in the
 * public API. Other errors with status 422 belong to git.
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

/** Writes a response with the header fields that all rendering calls share. */
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
  // The length is unknown for a large PDF, because its first bytes are sent while its end is still being created.
  if (bytes !== null) response.set("Content-Length", String(bytes));
  await writeAnswer(chunks, response, { bytes, signal });
}

/** When to come back after a refusal that passes. */
import type { ServerResponse } from "node:http";

/** Where nobody knows better. */
const RETRY_AFTER_S = 1;

/** Of an answer with this status, where it is one of those. */
export function setRetryAfter(
  response: ServerResponse,
  status: number,
  retryAfterS = RETRY_AFTER_S,
): void {
  if (status === 429 || status === 503) response.setHeader("Retry-After", String(retryAfterS));
}

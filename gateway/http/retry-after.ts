/** Sets the Retry-After header of refusals that are temporary. */
import type { ServerResponse } from "node:http";

/** The default, in seconds, if the refusal contains no time. */
const RETRY_AFTER_S = 1;

/** Sets Retry-After when the status is a temporary refusal (429, 503, …). */
export function setRetryAfter(
  response: ServerResponse,
  status: number,
  retryAfterS = RETRY_AFTER_S,
): void {
  if (status === 429 || status === 503) response.setHeader("Retry-After", String(retryAfterS));
}

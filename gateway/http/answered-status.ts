/** The status of a finished request, for the log and the metrics. */
import type { ServerResponse } from "node:http";
import { ERRORS } from "../../schemas/errors.ts";

/** Returns the status of the answer, or 499 when the client left before the answer began. */
export function statusOf(response: ServerResponse): number {
  return response.headersSent ? response.statusCode : ERRORS.cancelled.status;
}

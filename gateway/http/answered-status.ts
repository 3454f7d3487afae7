/** The status a request counts with once its connection is through with it: in the log and in metrics. */
import type { ServerResponse } from "node:http";
import { ERRORS } from "../../schemas/errors.ts";

/** That of the answer, or 499 where the client left before one began. */
export function statusOf(response: ServerResponse): number {
  return response.headersSent ? response.statusCode : ERRORS.cancelled.status;
}

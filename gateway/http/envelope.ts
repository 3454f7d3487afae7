/** The envelope around every JSON answer of the REST API. */
import type { CursorInfo, ResultInfo, WireError } from "../../schemas/http/envelope.ts";

export function success(result: unknown, resultInfo?: ResultInfo | CursorInfo) {
  return {
    success: true,
    errors: [],
    messages: [],
    result,
    ...(resultInfo ? { result_info: resultInfo } : {}),
  };
}

export function failure(errors: [WireError, ...WireError[]]) {
  return { success: false, errors, messages: [], result: null };
}

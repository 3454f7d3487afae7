/** What a process says of something that failed, as the refusal that a caller hears. */
import { APP_LOG_LINE_CHARS_MAX } from "../../../../schemas/apps/app-limits.ts";
import type { ProcessError } from "../../../../schemas/apps/app-process.ts";
import { ActorError, ERRORS, type ErrorCode } from "../../../../schemas/errors.ts";

/** What user code threw, or a refusal by its code: no more of it than a log shows, since it crosses the bus. */
export function toActorError({ name, message, refusal }: ProcessError): ActorError {
  const isRefusal = refusal !== undefined && isErrorCode(refusal);
  const text = isRefusal || name === "Error" ? message : `${name}: ${message}`;
  return new ActorError(isRefusal ? refusal : "app_failed", text.slice(0, APP_LOG_LINE_CHARS_MAX));
}

const isErrorCode = (text: string): text is ErrorCode => Object.hasOwn(ERRORS, text);

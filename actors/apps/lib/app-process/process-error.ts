/** Turns an error that a process reports into the refusal that a caller gets. */

import type { ProcessError } from "../../../../schemas/apps/app-process.ts";
import {
  APP_ERROR_NAME_CHARS_MAX,
  APP_LOG_LINE_CHARS_MAX,
  APP_STACK_CHARS_MAX,
} from "../../../../schemas/apps/limits.ts";
import { ActorError, ERRORS, type ErrorCode } from "../../../../schemas/errors.ts";

/**
 * Converts an error of user code, or a refusal with its code. The texts are shortened to the limits for logs, because
 * the error crosses the bus.
 */
export function toActorError({ name, message, refusal, stack }: ProcessError): ActorError {
  if (refusal !== undefined && isErrorCode(refusal)) {
    return new ActorError(refusal, message.slice(0, APP_LOG_LINE_CHARS_MAX));
  }
  const known = name.slice(0, APP_ERROR_NAME_CHARS_MAX);
  const thrown = { name: known, stack: stack?.slice(0, APP_STACK_CHARS_MAX) };
  const text = `${prefixOf(known)}${message}`.slice(0, APP_LOG_LINE_CHARS_MAX);
  return new ActorError("app_failed", text, { thrown });
}

/** Reverses `toActorError` for a caller in the same app: restores the error's original name and stack. */
export function thrownBy({ message, details }: ActorError): ProcessError | undefined {
  if (!details.thrown) return undefined;
  const { name, stack } = details.thrown;
  const prefix = prefixOf(name);
  const own = message.startsWith(prefix) ? message.slice(prefix.length) : message;
  return { name, message: own, stack };
}

/** Returns the error and the line of the app's own file that threw it, as one line. */
export function lineOf({ message, details }: ActorError): string {
  const [, place] = /^\s+at (.+)$/m.exec(details.thrown?.stack ?? "") ?? [];
  return place === undefined ? message : `${message} (at ${place})`;
}

const prefixOf = (name: string) => (name === "Error" ? "" : `${name}: `);

const isErrorCode = (text: string): text is ErrorCode => Object.hasOwn(ERRORS, text);

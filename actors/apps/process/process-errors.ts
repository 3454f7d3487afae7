/** Converts errors between the form of the channel to the host and thrown errors. */

import type { ProcessError } from "../../../schemas/apps/app-process.ts";
import { APP_ERROR_NAME_CHARS_MAX, APP_STACK_CHARS_MAX } from "../../../schemas/apps/limits.ts";
import { AgentRefusal } from "../package/refusal.ts";
import { forPeople } from "./stack-texts.ts";

export function toProcessError(error: unknown): ProcessError {
  if (!(error instanceof Error)) return { name: "Error", message: String(error) };
  return {
    name: nameOf(error),
    message: String(error.message),
    ...(error instanceof AgentRefusal && { refusal: error.refusal }),
    ...(typeof error.stack === "string" && { stack: forPeople(error.stack, APP_STACK_CHARS_MAX) }),
  };
}

/** Returns the name of an error. Many error classes set no name; then the name of the class is used. */
function nameOf(error: Error): string {
  const ofClass = (error.constructor as { name?: unknown } | undefined)?.name;
  const name = error.name === "Error" && typeof ofClass === "string" ? ofClass : error.name;
  return String(name).slice(0, APP_ERROR_NAME_CHARS_MAX);
}

/** JavaScript's own error classes, which callers test with `instanceof`. */
const BUILT_IN = new Map<string, ErrorConstructor>(
  [EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError].map((known) => [
    known.name,
    known,
  ]),
);

/**
 * Recreates the error that another agent or the host threw. `called` was created where the code made the failed call.
 */
export function toError(
  { name, message, refusal, stack = "" }: ProcessError,
  called?: Error,
): Error {
  const error =
    refusal === undefined
      ? new (BUILT_IN.get(name) ?? Error)(message)
      : new AgentRefusal(refusal, message);
  if (refusal === undefined) {
    Object.defineProperty(error, "name", { value: name, writable: true, configurable: true });
  }
  const here = forPeople(called?.stack ?? "", APP_STACK_CHARS_MAX);
  const frames = [stack, here].map(framesOf).filter((text) => text !== "");
  error.stack = [`${error.name}: ${message}`, ...frames].join("\n");
  return error;
}

/** The frames of a stack, without the message before them. */
function framesOf(stack: string): string {
  const at = stack.search(/^\s+at /m);
  return at < 0 ? "" : stack.slice(at).trimEnd();
}

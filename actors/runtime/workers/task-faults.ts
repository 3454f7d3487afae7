/** Classifies the errors that end a task without a reply: refusals, faults, and errors that end only this try. */
import { ActorError, isPassing } from "../../../schemas/errors.ts";
import { InvalidInput } from "../bus/refusal.ts";

/** Refusals that the platform causes, and not the request. */
export const FAULT_CODES: ReadonlySet<string> = new Set(["internal_error", "deadline_exceeded"]);

/**
 * The abort reason of a task whose process stops before the task ends. Another worker then takes the task
 * immediately.
 */
export class HostStopping extends Error {}
export class DeadlinePassed extends Error {}

/**
 * Throws the error of a call. Replaces a temporary refusal by a plain error, so that the task is retried and not
 * given up.
 */
export function tryAgain(error: unknown): never {
  throw isPassing(error) ? new Error("Cannot ask an actor at present", { cause: error }) : error;
}

/**
 * Returns the refusal with which this error ends the task; undefined for a fault, after which the task is retried.
 * `thrown` is what the work threw when its signal aborted. Its details say what the work has used.
 */
export function refusalOfTask(error: unknown, thrown: unknown): ActorError | undefined {
  if (error instanceof ActorError) return error;
  if (error instanceof InvalidInput) return error.refusal;
  if (error instanceof DeadlinePassed) {
    const { details = {} } = thrown instanceof ActorError ? thrown : {};
    return new ActorError("deadline_exceeded", "Cannot finish task: its deadline passed", details);
  }
  return undefined;
}

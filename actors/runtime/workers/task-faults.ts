/** Says why a task ends without a reply: which errors are refusals, which are faults, and which only end this try. */
import { ActorError, isPassing } from "../../../schemas/errors.ts";
import { InvalidInput } from "../bus/refusal.ts";

/** Refusals whose cause is ours and not the request. */
export const FAULT_CODES: ReadonlySet<string> = new Set(["internal_error", "deadline_exceeded"]);

/** This process ends before the task: another worker takes it at once. */
export class HostStopping extends Error {}
export class DeadlinePassed extends Error {}

/** An actor out of reach is no reason to give the task up. */
export function tryAgain(error: unknown): never {
  throw isPassing(error) ? new Error("Cannot ask an actor at present", { cause: error }) : error;
}

/** The refusal that ends a task with this error. Undefined for a fault, after which the task is tried again. */
export function refusalOfTask(error: unknown): ActorError | undefined {
  if (error instanceof ActorError) return error;
  if (error instanceof InvalidInput) return error.refusal;
  if (error instanceof DeadlinePassed) {
    return new ActorError("deadline_exceeded", "Cannot finish task: its deadline passed");
  }
  return undefined;
}

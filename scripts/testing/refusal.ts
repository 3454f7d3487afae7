/**
 * Returns the ActorError of a function or a promise, so that a test can inspect the error. Throws if there was no
 * error, or another one.
 */
import { ActorError } from "../../schemas/errors.ts";

export function refusal(run: () => unknown): ActorError {
  try {
    run();
  } catch (error) {
    return asRefusal(error);
  }
  throw new Error("nothing was refused");
}

export async function refusalOf(promise: Promise<unknown>): Promise<ActorError> {
  const outcome = await promise.then(
    () => new Error("nothing was refused"),
    (error: unknown) => error,
  );
  return asRefusal(outcome);
}

function asRefusal(error: unknown): ActorError {
  if (error instanceof ActorError) return error;
  throw error;
}

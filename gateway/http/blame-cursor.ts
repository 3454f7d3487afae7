/**
 * Converts an actor's refusal of a listing to a fault of the field `cursor`. The gateway has checked all other fields
 * before.
 */
import { ActorError } from "../../schemas/errors.ts";

/** For `.catch()`: rethrows an actor's `invalid_request` as a fault of the query's cursor. */
export function blameCursor(error: unknown): never {
  if (!(error instanceof ActorError) || error.code !== "invalid_request") throw error;
  const pointer = "/query/cursor";
  const message = `Cannot accept ${pointer}: Unknown, expected the cursor of an answer to the same question`;
  throw new ActorError("invalid_request", error.message, { faults: [{ pointer, message }] });
}

/** Says that it was the cursor where an actor refused a listing: the gateway has parsed the rest itself. */
import { ActorError } from "../../schemas/errors.ts";

/** To be caught by: rejects with what a client can act on. */
export function blameCursor(error: unknown): never {
  if (!(error instanceof ActorError) || error.code !== "invalid_request") throw error;
  const pointer = "/query/cursor";
  const message = `Cannot accept ${pointer}: Unknown, expected the cursor of an answer to the same question`;
  throw new ActorError("invalid_request", error.message, { faults: [{ pointer, message }] });
}

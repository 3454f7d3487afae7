/** Finds in a request's error the permission of the bus that the user lacks. */
import { PermissionViolationError } from "@nats-io/transport-node";

/** Returns the permission error among the error and its causes. Returns undefined if there is none. */
export function missingRight(error: unknown): PermissionViolationError | undefined {
  for (let at = error; at instanceof Error; at = at.cause) {
    if (at instanceof PermissionViolationError) return at;
  }
  return undefined;
}

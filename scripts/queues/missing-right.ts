/** Finds the missing bus right of a user in the error of a request. */
import { PermissionViolationError } from "@nats-io/transport-node";

/** Returns the permission error among the error and its causes. */
export function missingRight(error: unknown): PermissionViolationError | undefined {
  for (let at = error; at instanceof Error; at = at.cause) {
    if (at instanceof PermissionViolationError) return at;
  }
  return undefined;
}

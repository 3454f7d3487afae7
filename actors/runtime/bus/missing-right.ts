/** Finds the right on the bus that a user lacks, in the error of a request. */
import { PermissionViolationError } from "@nats-io/transport-node";

/** The refusal that the error is, or has as one of its causes. */
export function missingRight(error: unknown): PermissionViolationError | undefined {
  for (let at = error; at instanceof Error; at = at.cause) {
    if (at instanceof PermissionViolationError) return at;
  }
  return undefined;
}

/** Makes an error message that shows by an example which object was expected. */
import type { z } from "zod";

/** Returns the `error` option of an object schema. Faults inside the object have their own messages. */
export function shapedLike(example: object) {
  const message = `Expected an object, as in ${JSON.stringify(example)}`;
  return (issue: z.core.$ZodRawIssue) => (issue.code === "invalid_type" ? message : undefined);
}

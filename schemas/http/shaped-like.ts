/** Says by an example which object is expected where something else was sent. */
import type { z } from "zod";

/** For `error` of an object schema. What is wrong inside the object has messages of its own. */
export function shapedLike(example: object) {
  const message = `Expected an object, as in ${JSON.stringify(example)}`;
  return (issue: z.core.$ZodRawIssue) => (issue.code === "invalid_type" ? message : undefined);
}

/** The schema of path or query parameters for a route without parameters. */
import { z } from "zod";

export const nothing = z.strictObject({});

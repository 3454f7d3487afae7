/** Path or query parameters of a route that takes none. */
import { z } from "zod";

export const nothing = z.strictObject({});

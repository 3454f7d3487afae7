/** Query parameters of every rendering call. */
import { z } from "zod";

export const RenderQuery = z.strictObject({
  cacheTTL: z.coerce
    .number()
    .pipe(z.number().min(0).max(86_400))
    .optional()
    .describe("Accepted, without effect: every call renders anew"),
  browser: z.literal("chromium").optional().describe("The engine; there is one"),
});

/** State of the sign-in attempts for one e-mail address. */
import { z } from "zod";
import { EpochMs } from "../../../schemas/values.ts";

const Tries = z.object({ tries: z.int().min(0), lastAt: EpochMs });

export const LoginGuardState = z.object({
  /** The sources of attempts. The source of the latest attempt is the last. */
  sources: z.array(
    Tries.extend({
      from: z.string(),
      /** The number of attempts from this source that count towards the shared limit of all unknown sources. */
      counted: z.int().min(0),
    }),
  ),
  /** The counted attempts of all unknown sources together. Of each source only the first few are counted. */
  strangers: Tries,
});
export type LoginGuardState = z.infer<typeof LoginGuardState>;

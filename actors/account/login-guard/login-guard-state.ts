/** State of the sign-in attempts for one e-mail address. */
import { z } from "zod";
import { EpochMs } from "../../../schemas/values.ts";

const Tries = z.object({ tries: z.int().min(0), lastAt: EpochMs });

export const LoginGuardState = z.object({
  /** The one that tried last is last. */
  sources: z.array(
    Tries.extend({
      from: z.string(),
      /** Attempts of this source that count towards the shared limit of unknown sources. */
      counted: z.int().min(0),
    }),
  ),
  /** Attempts of all unknown sources together, a few of each. */
  strangers: Tries,
});
export type LoginGuardState = z.infer<typeof LoginGuardState>;

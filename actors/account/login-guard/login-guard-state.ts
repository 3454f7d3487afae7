/** What is kept of tries to sign in with one e-mail address. */
import { z } from "zod";
import { EpochMs } from "../../../schemas/values.ts";

const Tries = z.object({ tries: z.int().min(0), lastAt: EpochMs });

export const LoginGuardState = z.object({
  /** The one that tried last is last. */
  sources: z.array(
    Tries.extend({
      from: z.string(),
      /** How many of them are counted among those of strangers. */
      counted: z.int().min(0),
    }),
  ),
  /** Of all that are not known together: a few of each. */
  strangers: Tries,
});
export type LoginGuardState = z.infer<typeof LoginGuardState>;

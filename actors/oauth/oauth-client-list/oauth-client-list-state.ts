/** State of the list of an account's OAuth clients. */
import { z } from "zod";
import { EpochMs, Id } from "../../../schemas/values.ts";

export const OAuthClientListState = z.object({
  /** The number the next client gets. Numbers grow, so that a place in the list stays while clients come and go. */
  next: z.int().min(0),
  /** Oldest first. */
  clients: z.array(
    z.object({
      clientId: Id,
      number: z.int().min(0),
      /** When it was promised; none once it is made. */
      reservedAt: EpochMs.optional(),
    }),
  ),
});
export type OAuthClientListState = z.infer<typeof OAuthClientListState>;

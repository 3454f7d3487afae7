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
      /** Time of the reservation; absent once the client exists. */
      reservedAt: EpochMs.optional(),
    }),
  ),
});
export type OAuthClientListState = z.infer<typeof OAuthClientListState>;

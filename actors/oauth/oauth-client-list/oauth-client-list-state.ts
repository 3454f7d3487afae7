/** State of the list of an account's OAuth clients. */
import { z } from "zod";
import { EpochMs, Id } from "../../../schemas/values.ts";

export const OAuthClientListState = z.object({
  /**
   * The number of the next client. Numbers only increase, so a cursor stays valid while clients are added and
   * removed.
   */
  next: z.int().min(0),
  /** The number of reservations within a day, and the start of this day. */
  lately: z.object({ since: EpochMs, reservations: z.int().min(0) }).optional(),
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

/** The stored state of the places of an account's outgoing webhooks. Each queue that waits is a row. */
import { z } from "zod";
import { EpochMs } from "../../../schemas/values.ts";

export const OutgoingPlacesState = z.object({
  /** The turn of the next queue that has to wait. */
  next: z.int().min(1),
  /** The granted places that were not returned, the oldest first. */
  places: z.array(z.object({ queue: z.string(), at: EpochMs })),
  /** Time of the reminder `expire`. */
  expireAt: EpochMs.optional(),
});
export type OutgoingPlacesState = z.infer<typeof OutgoingPlacesState>;

/** A queue that waits. The name of the row is its turn. */
export const WaitingQueueRow = z.object({ queue: z.string(), places: z.int().min(1) });
export type WaitingQueueRow = z.infer<typeof WaitingQueueRow>;

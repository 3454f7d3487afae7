/**
 * The contract of the places that an account's outgoing webhooks have in the lane `post`. The key is the account's id.
 * A queue of webhooks sends a task only for a place that it was granted.
 */
import { z } from "zod";
import { defineContract } from "../contract.ts";

const Count = z.int().min(0);

export const outgoingPlaces = defineContract({
  kind: "outgoing-places",
  // A queue gets the place of another one.
  isShared: true,
  messages: {
    /**
     * Sets how many more places a queue of webhooks could use now, and returns places whose tries have ended. `queue`
     * is the key of the `outgoing-webhook` actor, which gets `placesGranted` when it is its turn. A queue may get no
     * answer if too many queues wait or if a host of an older version dropped the message, so it repeats the message.
     */
    wanted: { input: z.object({ queue: z.string().min(1), places: Count, returned: Count }) },
    /** The reminder: a place was not returned in time. */
    expire: { input: z.object({}) },
  },
});

/** What is kept of a host's pace: who waits, which turns there are, when the latest request left. */
import { z } from "zod";
import type { DeepReadonly } from "../../schemas/contract.ts";
import { EpochMs } from "../../schemas/values.ts";

export const Turn = z.object({
  /** Empty of a turn the site takes for itself, ahead of all others. */
  account: z.string(),
  job: z.string(),
  requests: z.int(),
  /** When it could begin, as it was granted. */
  dueAt: EpochMs,
  /** Whose it is: the first that asked. */
  by: z.string().optional(),
  /** Its worker has asked, and been told to wait. */
  asked: z.boolean(),
  startedAt: EpochMs.optional(),
  /** Of one that has started where there is no delay: its requests at once. */
  atOnce: z.int(),
});
export type Turn = DeepReadonly<z.infer<typeof Turn>>;

export const Pace = z.object({
  /** When the latest request left, or could have left at the latest. */
  lastStartAt: EpochMs,
  /** The host asked us to stay away until then. */
  awayUntil: EpochMs,
  /** How often in a row it did, each time by a request that left after the pause before. */
  busy: z.int().min(1).optional(),
  /** The turn whose request leaves next, and when it may: its worker has been told, or is when it asks. */
  going: z.object({ turn: z.string(), startAt: EpochMs }).optional(),
  /** Who waits, in the order in which they are served. */
  accounts: z.array(
    z.object({
      account: z.string(),
      jobs: z.array(z.object({ job: z.string(), wants: z.int().min(1) })),
    }),
  ),
  /** Granted and not finished, by their ids, in the order of their granting. */
  turns: z.record(z.string(), Turn),
});
export type Pace = DeepReadonly<z.infer<typeof Pace>>;

export const IDLE_PACE: z.infer<typeof Pace> = {
  lastStartAt: 0,
  awayUntil: 0,
  accounts: [],
  turns: {},
};

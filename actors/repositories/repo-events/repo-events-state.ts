/**
 * The stored repository events of an account: a row for each event, and the number of the last event that each
 * subscriber has received.
 */
import { z } from "zod";
import type { DeepReadonly } from "../../../schemas/contract.ts";
import { KeptRepoEvent } from "../../../schemas/repositories/repo-event.ts";
import { RepoEventFilter, RepoEventSubscriber } from "../../../schemas/repositories/repo-events.ts";

export const RepoEventsState = z.object({
  /** Number of the newest event. */
  last: z.int().min(0),
  /** `first` is the number of the oldest kept event. `bytes` are the bytes of all kept events. */
  first: z.int().min(1).default(1),
  bytes: z.int().min(0).default(0),
  /** The number of the last event that was part of a task. Later pushes that are `open` wait until that task ends. */
  asked: z.int().min(0).optional(),
  subscriptions: z
    .record(
      z.string(),
      z.object({
        filter: RepoEventFilter,
        subscriber: RepoEventSubscriber,
        /**
         * The number up to which events were handled for this subscriber: each was sent to the subscriber or does not
         * match its filter.
         */
        after: z.int().min(0),
      }),
    )
    .default({}),
});
export type RepoEventsState = DeepReadonly<z.output<typeof RepoEventsState>>;

/**
 * Rows stored by older versions hold one push with all its refs. Such a row is read as the event of its first ref
 * only.
 */
export const EventRow = z.preprocess((row) => {
  const old = z
    .object({ type: z.literal("pushed"), refs: z.array(z.object()) })
    .loose()
    .safeParse(row);
  if (!old.success) return row;
  const { refs, refsTotal: _, ...rest } = old.data;
  return { ...rest, ...(row as { refs: object[] }).refs[0] };
}, KeptRepoEvent);
export type EventRow = DeepReadonly<z.output<typeof EventRow>>;
export type EventRows = ReadonlyMap<string, EventRow>;

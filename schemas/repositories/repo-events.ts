/**
 * The contract of the actor that stores an account's repository events in order and sends them to subscribers. The
 * key is the account's id.
 */
import { z } from "zod";
import { defineContract } from "../contract.ts";
import { NamespaceName, RepoName } from "./git-names.ts";
import { EVENTS_LISTED_MAX } from "./limits.ts";
import { PushedCommits, RepoEvent, RepoEventType } from "./repo-event.ts";
import { RepoEventEnvelope } from "./repo-event-envelope.ts";

/** Selects events by type, and by namespace and repository if the filter names them. */
export const RepoEventFilter = z.object({
  types: z.array(RepoEventType).min(1).max(RepoEventType.options.length),
  namespace: NamespaceName.optional(),
  repoName: RepoName.optional(),
});
export type RepoEventFilter = z.infer<typeof RepoEventFilter>;

/**
 * A subscriber: an actor whose contract has the message REPO_HAPPENED with the input RepoHappened. It gets each event
 * once and in order.
 */
export const RepoEventSubscriber = z.object({
  kind: z.string().regex(/^[a-z][a-z0-9-]*$/),
  key: z.string().min(1).max(256),
});
export const REPO_HAPPENED = "repoHappened";
export const RepoHappened = z.object({
  events: z.array(RepoEventEnvelope).min(1),
  /** The number of each event, counted in its account. */
  numbers: z.array(z.int().min(1)).optional(),
});
export type RepoHappened = z.infer<typeof RepoHappened>;

const SubscriptionId = z.string().regex(/^[\w.-]{1,128}$/);
const Nothing = z.object({});

export const repoEvents = defineContract({
  kind: "repo-events",
  messages: {
    happened: { input: z.object({ event: RepoEvent }) },
    /** A gateway reports the new commits of each ref of a push; null if they cannot be found. */
    described: {
      input: z.object({
        events: z.array(z.object({ number: z.int().min(1), pushed: PushedCommits.nullable() })),
      }),
    },
    /** Lists the events with numbers above `after`, the oldest first, without those that were deleted already. */
    list: {
      input: z.object({ after: z.int().min(0), limit: z.int().min(1).max(EVENTS_LISTED_MAX) }),
      reply: z.object({
        events: z.array(z.object({ number: z.int().min(1), event: RepoEventEnvelope })),
        /** Number of the newest deliverable event, or 0 without events. */
        last: z.int().min(0),
      }),
    },
    /**
     * Subscribes to events from now on. For a known `id`, replaces the subscription, which continues after its last
     * event.
     */
    subscribe: {
      input: z.object({
        id: SubscriptionId,
        filter: RepoEventFilter,
        subscriber: RepoEventSubscriber,
      }),
      reply: Nothing,
    },
    /** Ends a subscription. A repetition changes nothing. */
    unsubscribe: { input: z.object({ id: SubscriptionId }), reply: Nothing },

    /**
     * Subscribes an app by a send without reply; unsubscribes it if `filter` is null. The app's name is in `id`.
     * EVENT_SUBSCRIPTIONS_MAX does not apply, because the number of apps has its own limit.
     */
    follow: {
      input: z.object({
        id: SubscriptionId,
        filter: RepoEventFilter.nullable(),
        subscriber: RepoEventSubscriber,
      }),
    },

    /**
     * Reminders. `describeLate`: the commits of a push were not found in time. `tellMore`: more events wait for
     * delivery.
     */
    describeLate: { input: Nothing },
    tellMore: { input: Nothing },
  },
});

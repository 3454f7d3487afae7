/** The contract of an account's repository events, in order, for subscribers. The key is the account's id. */
import { z } from "zod";
import { defineContract } from "../contract.ts";
import { NamespaceName, RepoName } from "./git-names.ts";
import { EVENTS_LISTED_MAX } from "./limits.ts";
import { PushedCommits, RepoEvent, RepoEventType } from "./repo-event.ts";
import { RepoEventEnvelope } from "./repo-event-envelope.ts";

/** Which events: of these types, of one namespace or repository where it is named. */
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
  /** The numbers of these events in the account. */
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
    /** Lists events after a number, oldest first, or from the oldest kept event. */
    list: {
      input: z.object({ after: z.int().min(0), limit: z.int().min(1).max(EVENTS_LISTED_MAX) }),
      reply: z.object({
        events: z.array(z.object({ number: z.int().min(1), event: RepoEventEnvelope })),
        /** Number of the newest deliverable event, or 0 without events. */
        last: z.int().min(0),
      }),
    },
    /** Subscribes from now on. A known name replaces its subscription and continues after its last event. */
    subscribe: {
      input: z.object({
        id: SubscriptionId,
        filter: RepoEventFilter,
        subscriber: RepoEventSubscriber,
      }),
      reply: Nothing,
    },
    /** Once more is no fault. */
    unsubscribe: { input: z.object({ id: SubscriptionId }), reply: Nothing },

    /**
     * Both by mail, from an app (its name is in the id): apps are bounded themselves. Null: it follows nothing more.
     */
    follow: {
      input: z.object({
        id: SubscriptionId,
        filter: RepoEventFilter.nullable(),
        subscriber: RepoEventSubscriber,
      }),
    },

    /** Reminders: a push was not described in time; more events wait for delivery. */
    describeLate: { input: Nothing },
    tellMore: { input: Nothing },
  },
});

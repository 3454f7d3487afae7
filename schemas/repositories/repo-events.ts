/** The contract of an account's repository events: what happened, in its order, for those who follow it. The key is the account's id. */
import { z } from "zod";
import { defineContract } from "../contract.ts";
import { EpochMs } from "../values.ts";
import {
  EVENT_COMMITS_MAX,
  EVENT_OTHERS_MAX,
  EVENT_REFS_MAX,
  EVENTS_LISTED_MAX,
} from "./git-limits.ts";
import { NamespaceName, ObjectId, RepoId, RepoName } from "./git-names.ts";
import { RepoTokenId, RepoTokenScope } from "./repo.ts";
import { RepoEventEnvelope } from "./repo-event-envelope.ts";

const Of = { repoId: RepoId, namespace: NamespaceName, repoName: RepoName, at: EpochMs };

/** The repository as it was then. */
const About = z.object({
  defaultBranch: z.string(),
  description: z.string().nullable(),
  readOnly: z.boolean(),
  createdAt: EpochMs,
  updatedAt: EpochMs,
  lastPushAt: EpochMs.nullable(),
});
const about = { about: About.optional() };

/** Zeros for what was not there, or is not any more. */
export const RefChange = z.object({ ref: z.string(), before: z.string(), after: z.string() });
export type RefChange = z.infer<typeof RefChange>;

const Person = z.object({ name: z.string(), email: z.string() });
/** What is new in a ref. */
export const PushedCommits = z.object({
  /** The newest, the oldest of those first. */
  commits: z
    .array(
      z.object({
        id: ObjectId,
        message: z.string(),
        messageTruncated: z.boolean(),
        committedAt: EpochMs,
        author: Person,
        committer: Person,
        parents: z.array(ObjectId),
      }),
    )
    .max(EVENT_COMMITS_MAX),
  total: z.int().min(0),
});
export type PushedCommits = z.infer<typeof PushedCommits>;

const single = [
  z.object({ ...Of, ...about, type: z.literal("created") }),
  z.object({ ...Of, ...about, type: z.literal("deleted") }),
  /** `source`: artifacts:<namespace>/<name>. */
  z.object({ ...Of, ...about, type: z.literal("forked"), source: z.string() }),
  /** `source`: git:<url>. */
  z.object({
    ...Of,
    ...about,
    type: z.literal("imported"),
    source: z.string(),
    branch: z.string().nullable().optional(),
  }),
  z.object({ ...Of, type: z.literal("cloned") }),
  z.object({ ...Of, type: z.literal("fetched") }),
  z.object({
    ...Of,
    type: z.literal("token.created"),
    tokenId: RepoTokenId,
    scope: RepoTokenScope,
    expiresAt: EpochMs,
  }),
  z.object({ ...Of, type: z.literal("token.revoked"), tokenId: RepoTokenId }),
] as const;

/** What the client said beside the push. */
const options = z.array(z.string()).optional();

/** As it is told by who did it. */
export const RepoEvent = z.discriminatedUnion("type", [
  ...single,
  z.object({
    ...Of,
    type: z.literal("pushed"),
    refs: z.array(RefChange).max(EVENT_REFS_MAX),
    /** Of which `refs` are the first. */
    refsTotal: z.int().min(1),
    /** Where other refs were before it: what they lead to is not new. */
    others: z.array(ObjectId).max(EVENT_OTHERS_MAX).default([]),
    options,
  }),
]);
export type RepoEvent = z.output<typeof RepoEvent>;

/** As it is kept: an event for each ref of a push. */
export const KeptRepoEvent = z.discriminatedUnion("type", [
  ...single,
  z.object({
    ...Of,
    type: z.literal("pushed"),
    ...RefChange.shape,
    /** Somebody looks for its commits. */
    open: z.boolean().optional(),
    pushed: PushedCommits.optional(),
    options,
  }),
]);
export type KeptRepoEvent = z.infer<typeof KeptRepoEvent>;

export const RepoEventType = z.enum(KeptRepoEvent.options.map(({ shape }) => shape.type.value));
export type RepoEventType = z.infer<typeof RepoEventType>;

/** Which events: of these types, of one namespace or repository where it is named. */
export const RepoEventFilter = z.object({
  types: z.array(RepoEventType).min(1).max(RepoEventType.options.length),
  namespace: NamespaceName.optional(),
  repoName: RepoName.optional(),
});
export type RepoEventFilter = z.infer<typeof RepoEventFilter>;

/**
 * Who is told: an actor whose contract has the message REPO_HAPPENED with the input RepoHappened. It hears of each event
 * once, in their order.
 */
export const RepoEventSubscriber = z.object({
  kind: z.string().regex(/^[a-z][a-z0-9-]*$/),
  key: z.string().min(1).max(256),
});
export const REPO_HAPPENED = "repoHappened";
export const RepoHappened = z.object({
  events: z.array(RepoEventEnvelope).min(1),
  /** Of each of them, in the account. */
  numbers: z.array(z.int().min(1)).optional(),
});
export type RepoHappened = z.infer<typeof RepoHappened>;

const SubscriptionId = z.string().regex(/^[\w.-]{1,128}$/);
const Nothing = z.object({});

export const repoEvents = defineContract({
  kind: "repo-events",
  messages: {
    happened: { input: z.object({ event: RepoEvent }) },
    /** Told by who looked at a push: what is new in each of its refs; null where that cannot be said. */
    described: {
      input: z.object({
        events: z.array(z.object({ number: z.int().min(1), pushed: PushedCommits.nullable() })),
      }),
    },
    /** Those after a number, the oldest first; the first that is kept where that is later. */
    list: {
      input: z.object({ after: z.int().min(0), limit: z.int().min(1).max(EVENTS_LISTED_MAX) }),
      reply: z.object({
        events: z.array(z.object({ number: z.int().min(1), event: RepoEventEnvelope })),
        /** Number of the newest that can be told; 0 where nothing has happened. */
        last: z.int().min(0),
      }),
    },
    /** From now on; under a name that is known, in the place of what that was, from where it was told last. */
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

    /** Reminders: nobody has looked at a push; there is more to tell. */
    describeLate: { input: Nothing },
    tellMore: { input: Nothing },
  },
});

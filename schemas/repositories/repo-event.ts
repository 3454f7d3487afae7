/** One event of a repository, in two forms: as the repository reports it, and as the account stores it. */
import { z } from "zod";
import { EpochMs } from "../values.ts";
import { NamespaceName, ObjectId, RepoId, RepoName } from "./git-names.ts";
import { EVENT_COMMITS_MAX, EVENT_OTHERS_MAX, EVENT_REFS_MAX } from "./limits.ts";
import { RepoTokenId, RepoTokenScope } from "./repo.ts";

const Of = { repoId: RepoId, namespace: NamespaceName, repoName: RepoName, at: EpochMs };

/** The repository at the time of the event. */
const About = z.object({
  defaultBranch: z.string(),
  description: z.string().nullable(),
  readOnly: z.boolean(),
  createdAt: EpochMs,
  updatedAt: EpochMs,
  lastPushAt: EpochMs.nullable(),
});
const about = { about: About.optional() };

/**
 * The change of one ref. A missing object id is written as zeros: `before` of a new ref, and `after` of a deleted
 * ref.
 */
export const RefChange = z.object({ ref: z.string(), before: z.string(), after: z.string() });
export type RefChange = z.infer<typeof RefChange>;

const Person = z.object({ name: z.string(), email: z.string() });
/** The new commits of a ref. */
export const PushedCommits = z.object({
  /** The newest of the new commits, ordered from the oldest to the newest. */
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

/** Push options of the client. */
const options = z.array(z.string()).optional();

/** An event as the repository or a gateway reports it. */
export const RepoEvent = z.discriminatedUnion("type", [
  ...single,
  z.object({
    ...Of,
    type: z.literal("pushed"),
    refs: z.array(RefChange).max(EVENT_REFS_MAX),
    /** Total number of changed refs. `refs` has only the first EVENT_REFS_MAX of them. */
    refsTotal: z.int().min(1),
    /** Values that refs of the repository had before the push. Commits that these values reach are not new. */
    others: z.array(ObjectId).max(EVENT_OTHERS_MAX).default([]),
    options,
  }),
]);
export type RepoEvent = z.output<typeof RepoEvent>;

/** A stored event: one for each ref of a push. */
export const KeptRepoEvent = z.discriminatedUnion("type", [
  ...single,
  z.object({
    ...Of,
    type: z.literal("pushed"),
    ...RefChange.shape,
    /** True until a gateway has found the commits of the push. */
    open: z.boolean().optional(),
    /** As in `RepoEvent`. Only the first open event of a push has it. */
    others: z.array(ObjectId).max(EVENT_OTHERS_MAX).optional(),
    pushed: PushedCommits.optional(),
    options,
  }),
]);
export type KeptRepoEvent = z.infer<typeof KeptRepoEvent>;

export const RepoEventType = z.enum(KeptRepoEvent.options.map(({ shape }) => shape.type.value));
export type RepoEventType = z.infer<typeof RepoEventType>;

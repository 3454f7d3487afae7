/** The contract of an account's repository events: what happened, for those who follow it. The key is the account's id. */
import { z } from "zod";
import { defineContract } from "./contract.ts";
import { EVENT_REFS_MAX, EVENTS_LISTED_MAX } from "./git-limits.ts";
import { NamespaceName, RepoId, RepoName } from "./git-names.ts";
import { RepoTokenId, RepoTokenScope } from "./repo.ts";
import { EpochMs } from "./values.ts";

const Of = { repoId: RepoId, namespace: NamespaceName, repoName: RepoName, at: EpochMs };

/** Zeros for what was not there, or is not any more. */
const RefChange = z.object({ ref: z.string(), before: z.string(), after: z.string() });
export type RefChange = z.infer<typeof RefChange>;

export const RepoEvent = z.discriminatedUnion("type", [
  z.object({ ...Of, type: z.literal("created") }),
  z.object({ ...Of, type: z.literal("deleted") }),
  z.object({ ...Of, type: z.literal("forked"), source: z.string() }),
  z.object({ ...Of, type: z.literal("imported"), source: z.string() }),
  z.object({
    ...Of,
    type: z.literal("pushed"),
    refs: z.array(RefChange).max(EVENT_REFS_MAX),
    /** Of which `refs` are the first. */
    refsTotal: z.int().min(1),
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
]);
export type RepoEvent = z.infer<typeof RepoEvent>;

export const repoEvents = defineContract({
  kind: "repo-events",
  messages: {
    happened: { input: z.object({ event: RepoEvent }) },
    /** Those after a number, the oldest first; the first that is kept where that is later. */
    list: {
      input: z.object({ after: z.int().min(0), limit: z.int().min(1).max(EVENTS_LISTED_MAX) }),
      reply: z.object({
        events: z.array(z.object({ number: z.int().min(1), event: RepoEvent })),
        /** Number of the newest there is; 0 where nothing has happened. */
        last: z.int().min(0),
      }),
    },
  },
});

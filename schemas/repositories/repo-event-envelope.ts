/** Repository events as subscribers receive them, in the shape of the public API. */
import { z } from "zod";
import { Id } from "../values.ts";
import type { KeptRepoEvent } from "./repo-event.ts";

const Time = z.iso.datetime();
const Person = z.object({ name: z.string(), email: z.string() });
const Repo = z.object({
  repoId: z.string(),
  defaultBranch: z.string().nullable(),
  description: z.string().nullable(),
  readOnly: z.boolean(),
  createdAt: Time.nullable(),
  updatedAt: Time.nullable(),
  lastPushAt: Time.nullable(),
});

const Source = (type: "artifacts" | "artifacts.repo") =>
  z.object({ type: z.literal(type), namespace: z.string(), repoName: z.string() });
const Metadata = z.object({
  accountId: Id,
  /** Null in lists of events, which belong to no subscription. */
  eventSubscriptionId: z.string().nullable(),
  eventSchemaVersion: z.literal(1),
  eventTimestamp: Time,
});
const ofAccount = <T extends string, P extends z.ZodType>(type: T, payload: P) =>
  z.object({
    type: z.literal(`artifacts.repo.${type}` as const),
    source: Source("artifacts"),
    payload,
    metadata: Metadata,
  });
const ofRepo = <T extends string, P extends z.ZodType>(type: T, payload: P) =>
  z.object({
    type: z.literal(`artifacts.repo.${type}` as const),
    source: Source("artifacts.repo"),
    payload,
    metadata: Metadata,
  });

export const RepoEventEnvelope = z.discriminatedUnion("type", [
  ofAccount("created", Repo),
  ofAccount("deleted", Repo),
  /** `source` is the repository that was forked; `payload` names the new fork. */
  ofAccount("forked", Repo.extend({ namespace: z.string(), repoName: z.string() })),
  ofAccount("imported", Repo.extend({ sourceUrl: z.string(), branch: z.string().nullable() })),
  ofRepo(
    "pushed",
    z.object({
      ref: z.string(),
      before: z.string(),
      after: z.string(),
      /**
       * The new commits of the ref, the oldest first. If there are too many, only the newest of them. If they were not
       * found in time, none, with `totalCommitsCount` 0 and `commitsTruncated` true.
       */
      commits: z.array(
        z.object({
          id: z.string(),
          message: z.string(),
          messageTruncated: z.boolean(),
          timestamp: Time,
          author: Person,
          committer: Person,
          parents: z.array(z.string()),
        }),
      ),
      totalCommitsCount: z.int(),
      commitsTruncated: z.boolean(),
      /** The options of `git push -o`, if there were any. */
      pushOptions: z.array(z.string()).optional(),
    }),
  ),
  ofRepo("cloned", z.object({})),
  ofRepo("fetched", z.object({})),
  ofRepo(
    "token.created",
    z.object({ tokenId: z.string(), scope: z.enum(["read", "write"]), expiresAt: Time }),
  ),
  ofRepo("token.revoked", z.object({ tokenId: z.string() })),
]);
export type RepoEventEnvelope = z.infer<typeof RepoEventEnvelope>;

const timeOf = (at: number) => new Date(at).toISOString();
const maybeTime = (at: number | null | undefined) => (at == null ? null : timeOf(at));

export function envelopeOf(
  event: KeptRepoEvent,
  { accountId, subscriptionId }: { accountId: string; subscriptionId: string | null },
): RepoEventEnvelope {
  const { namespace, repoName } = event;
  const metadata = {
    accountId,
    eventSubscriptionId: subscriptionId,
    eventSchemaVersion: 1 as const,
    eventTimestamp: timeOf(event.at),
  };
  const account = { type: "artifacts" as const, namespace, repoName };
  const repo = { type: "artifacts.repo" as const, namespace, repoName };
  switch (event.type) {
    case "created":
    case "deleted":
      return {
        type: `artifacts.repo.${event.type}`,
        source: account,
        payload: payloadOf(event),
        metadata,
      };
    case "forked": {
      const [, space = "", name = ""] = /^artifacts:([^/]*)\/(.*)$/.exec(event.source) ?? [];
      return {
        type: "artifacts.repo.forked",
        source: { ...account, namespace: space, repoName: name },
        payload: { ...payloadOf(event), namespace, repoName },
        metadata,
      };
    }
    case "imported": {
      const sourceUrl = event.source.replace(/^git:/, "");
      const payload = { ...payloadOf(event), sourceUrl, branch: event.branch ?? null };
      return { type: "artifacts.repo.imported", source: account, payload, metadata };
    }
    case "pushed": {
      const { ref, before, after, pushed, options } = event;
      const commits = (pushed?.commits ?? []).map(({ committedAt, ...commit }) => ({
        ...commit,
        timestamp: timeOf(committedAt),
      }));
      const totalCommitsCount = pushed?.total ?? 0;
      const commitsTruncated = pushed === undefined || commits.length < totalCommitsCount;
      const payload = {
        ...{ ref, before, after, commits, totalCommitsCount, commitsTruncated },
        ...(options && { pushOptions: [...options] }),
      };
      return { type: "artifacts.repo.pushed", source: repo, payload, metadata };
    }
    case "cloned":
    case "fetched":
      return { type: `artifacts.repo.${event.type}`, source: repo, payload: {}, metadata };
    case "token.created": {
      const { tokenId, scope, expiresAt } = event;
      const payload = { tokenId, scope, expiresAt: timeOf(expiresAt) };
      return { type: "artifacts.repo.token.created", source: repo, payload, metadata };
    }
    case "token.revoked": {
      const payload = { tokenId: event.tokenId };
      return { type: "artifacts.repo.token.revoked", source: repo, payload, metadata };
    }
    default:
      return event satisfies never;
  }
}

function payloadOf({
  repoId,
  about,
}: Extract<KeptRepoEvent, { type: "created" | "deleted" | "forked" | "imported" }>) {
  return {
    repoId,
    defaultBranch: about?.defaultBranch ?? null,
    description: about?.description ?? null,
    readOnly: about?.readOnly ?? false,
    createdAt: maybeTime(about?.createdAt),
    updatedAt: maybeTime(about?.updatedAt),
    lastPushAt: maybeTime(about?.lastPushAt),
  };
}

/** The contract of a namespace: the names of its repositories. The key is `namespaceKey`. */
import { z } from "zod";
import { defineContract } from "../contract.ts";
import { EpochMs, Id } from "../values.ts";
import { NamespaceName, RepoId, RepoName } from "./git-names.ts";
import { REPO_LIST_MAX } from "./limits.ts";
import { RepoEntry } from "./repo.ts";

const Nothing = z.object({});

export const NamespaceEntry = z.object({
  accountId: Id,
  /** The name in its original spelling. */
  name: NamespaceName,
  repoCount: z.int().min(0),
  createdAt: EpochMs,
  updatedAt: EpochMs,
});
export type NamespaceEntry = z.infer<typeof NamespaceEntry>;

/** A repository in a listing. */
export const RepoListing = RepoEntry.pick({
  id: true,
  name: true,
  description: true,
  defaultBranch: true,
  readOnly: true,
  source: true,
  status: true,
  createdAt: true,
  updatedAt: true,
  lastPushAt: true,
}).extend({
  /** Absent in rows that were stored before listings had this field. */
  failure: RepoEntry.shape.failure.optional(),
});
export type RepoListing = z.infer<typeof RepoListing>;

export const RepoSort = z.enum(["created_at", "updated_at", "last_push_at", "name"]);
export type RepoSort = z.infer<typeof RepoSort>;

const Named = z.object({ accountId: Id, name: NamespaceName });

export const namespace = defineContract({
  kind: "namespace",
  messages: {
    /** Creates the namespace. Refuses with `conflict` if it exists. */
    create: { input: Named, reply: NamespaceEntry },
    get: { input: Nothing, reply: NamespaceEntry },
    /** Deletes the namespace. Refuses with `conflict` while it has repositories. */
    remove: { input: Nothing, reply: Nothing },

    /**
     * Reserves a name for a new repository, and makes the namespace if it does not exist. Refuses a taken name with
     * `conflict`, even if its claim has expired: only the repository knows whether it was created (`refuseCreation`).
     */
    claim: { input: Named.extend({ listing: RepoListing }), reply: Nothing },
    /**
     * Refuses with `not_found` if no repository has the name. With `orRemoved`, also finds the repository that had the
     * name last.
     */
    find: {
      input: z.object({ name: RepoName, orRemoved: z.boolean().optional() }),
      reply: z.object({
        id: RepoId,
        /** True if the repository was claimed long ago and has not yet reported that it exists. */
        claimExpired: z.boolean().optional(),
      }),
    },
    /**
     * Frees the name and removes its repository. With `id`, does so only if this repository has the name. A repetition
     * changes nothing. Gateways of older versions send no `id`.
     */
    release: {
      input: z.object({ name: RepoName, id: RepoId.optional() }),
      reply: z.object({ id: RepoId }),
    },
    list: {
      input: z.object({
        limit: z.int().min(1).max(REPO_LIST_MAX),
        /** A part of the name. */
        search: z.string().max(100).optional(),
        sort: RepoSort,
        direction: z.enum(["asc", "desc"]),
        /** The last entry that the reader has. */
        after: z.object({ value: z.union([z.string(), z.int()]), id: RepoId }).optional(),
      }),
      reply: z.object({ repos: z.array(RepoListing), more: z.boolean(), total: z.int().min(0) }),
    },

    /** A new or changed repository reports itself. */
    repoChanged: { input: RepoListing },
    /** A removed repository reports its end. */
    repoRemoved: { input: z.object({ id: RepoId, name: RepoName }) },
  },
});

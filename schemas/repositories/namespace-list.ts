/** The contract of the list of an account's namespaces. The key is the account's id. */
import { z } from "zod";
import { defineContract } from "../contract.ts";
import { EpochMs } from "../values.ts";
import { NamespaceName } from "./git-names.ts";
import { NAMESPACE_LIST_MAX } from "./limits.ts";

const Nothing = z.object({});

/** A namespace as it last reported itself. */
export const ListedNamespace = z.object({
  name: NamespaceName,
  repoCount: z.int().min(0),
  createdAt: EpochMs,
  updatedAt: EpochMs,
});
export type ListedNamespace = z.infer<typeof ListedNamespace>;

export const namespaceList = defineContract({
  kind: "namespace-list",
  messages: {
    /**
     * Adds a namespace to the list before the namespace is created, so that the list never lacks an existing
     * namespace. Refuses past the limit. If the namespace is never created, its entry disappears soon.
     */
    announce: { input: z.object({ name: NamespaceName }), reply: Nothing },
    /** Lists namespaces in the order of names. */
    list: {
      input: z.object({
        limit: z.int().min(1).max(NAMESPACE_LIST_MAX),
        /** The last name that the reader has. */
        after: z.string().optional(),
      }),
      reply: z.object({
        namespaces: z.array(ListedNamespace),
        more: z.boolean(),
        total: z.int().min(0),
      }),
    },

    /** A new or changed namespace reports itself. */
    changed: { input: ListedNamespace },
    /** A removed namespace reports its end. */
    removed: { input: z.object({ name: NamespaceName }) },
  },
});

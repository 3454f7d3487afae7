/** The contract of an account's namespaces: which there are. The key is the account's id. */
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
     * Lists a namespace before it is made, so that nobody misses it afterwards. Refuses past the limit. An entry
     * whose namespace is never made disappears soon.
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

/** The stored namespaces of an account: a row for each. */
import { z } from "zod";
import type { DeepReadonly } from "../../../schemas/contract.ts";
import { ListedNamespace } from "../../../schemas/repositories/namespace-list.ts";
import { EpochMs } from "../../../schemas/values.ts";

export const NamespaceListState = z.object({});

/** Rows are keyed by the name in lower case. */
export const NamespaceListRow = ListedNamespace.extend({
  /** When it was announced, until it says that it is there. */
  announcedAt: EpochMs.optional(),
});
export type NamespaceListRow = DeepReadonly<z.infer<typeof NamespaceListRow>>;

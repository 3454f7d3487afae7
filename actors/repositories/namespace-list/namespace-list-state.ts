/** The stored namespaces of an account: one row for each namespace. */
import { z } from "zod";
import type { DeepReadonly } from "../../../schemas/contract.ts";
import { ListedNamespace } from "../../../schemas/repositories/namespace-list.ts";
import { EpochMs } from "../../../schemas/values.ts";

export const NamespaceListState = z.object({});

/** Rows are keyed by the namespace's name in lower case. */
export const NamespaceListRow = ListedNamespace.extend({
  /** When the namespace was announced. Absent after the namespace has reported itself for the first time. */
  announcedAt: EpochMs.optional(),
});
export type NamespaceListRow = DeepReadonly<z.infer<typeof NamespaceListRow>>;

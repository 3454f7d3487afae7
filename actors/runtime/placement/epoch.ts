/** Who owns a shard, as the store has it. */
import { z } from "zod";

/**
 * `host` is null where the owner gave the shard back. `journals`: hosts whose journals may hold what the shard's keys do
 * not show yet.
 */
export const Epoch = z.object({
  host: z.string().nullable(),
  journals: z.array(z.string()).default([]),
});
export type Epoch = z.infer<typeof Epoch>;

export const NOBODY: Epoch = { host: null, journals: [] };

/** Who takes a shard over after this epoch reads these. */
export const journalsOf = (epoch: Epoch | undefined): string[] => [
  ...new Set([...(epoch?.journals ?? []), ...(epoch?.host ? [epoch.host] : [])]),
];

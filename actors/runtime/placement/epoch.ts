/** The owner of a shard, as the store names it. */
import { z } from "zod";

/**
 * `host` is null where the owner gave the shard back. `journals` names the hosts whose journals may hold commits of
 * the shard that its keys do not show yet.
 */
export const Epoch = z.object({
  host: z.string().nullable(),
  journals: z.array(z.string()).default([]),
});
export type Epoch = z.infer<typeof Epoch>;

export const NOBODY: Epoch = { host: null, journals: [] };

/** The journals that a host reads when it takes the shard over after this epoch. */
export const journalsOf = (epoch: Epoch | undefined): string[] => [
  ...new Set([...(epoch?.journals ?? []), ...(epoch?.host ? [epoch.host] : [])]),
];

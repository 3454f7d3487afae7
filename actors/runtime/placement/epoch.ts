/** The epoch of a shard, which names the shard's owner in the store. */
import { z } from "zod";

/** An earlier owner's journal, and the epoch under which it had the shard. */
const Source = z.object({ journal: z.string(), epoch: z.number() });
export type Source = z.infer<typeof Source>;

/**
 * `owner` is null after the owner gave the shard back. While a host takes the shard, `from` names the commits that the
 * shard's keys may lack. After the host has opened the shard, `from` is absent.
 */
const OwnerEpoch = z.object({
  owner: z.string().nullable(),
  from: Source.optional(),
  firstJournals: z.array(z.string()).default([]),
});
export type Epoch = z.infer<typeof OwnerEpoch>;

/** An epoch of the first release. Hosts of that release cannot read newer epochs, so they never take a shard back. */
const FirstEpoch = z
  .object({ host: z.string().nullable(), journals: z.array(z.string()).default([]) })
  .transform(({ host, journals }) => {
    const firstJournals = [...new Set([...journals, ...(host === null ? [] : [host])])];
    return { owner: host, from: undefined, firstJournals };
  });

export const Epoch = OwnerEpoch.or(FirstEpoch);

/** The epoch as it is stored. */
export const encodeEpoch = ({ owner, from, firstJournals }: Epoch): string =>
  JSON.stringify({ owner, from, ...(firstJournals.length > 0 && { firstJournals }) });

export const NOBODY: Epoch = { owner: null, firstJournals: [] };

/**
 * Returns the journals that a host must read when it takes the shard over. `sequence` is the sequence of the present
 * epoch.
 */
export function sourcesOf({
  owner,
  from,
  firstJournals,
  sequence,
}: Epoch & { sequence: number }): Pick<Epoch, "from" | "firstJournals"> {
  if (from || firstJournals.length > 0) return { from, firstJournals };
  // The owner has opened the shard, and has committed under this epoch alone since.
  return { from: owner === null ? undefined : { journal: owner, epoch: sequence }, firstJournals };
}

/** True while the epoch names the journal, so that a host may still need it. */
export const namesJournal = ({ owner, from, firstJournals }: Epoch, journal: string) =>
  owner === journal || from?.journal === journal || firstJournals.includes(journal);

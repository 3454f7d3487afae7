/** Fills a new repository with its first content, for example of a fork. */
import type { DeepReadonly } from "../../../schemas/contract.ts";
import { TREE_DEPTH_MAX } from "../../../schemas/repositories/limits.ts";
import type { Pack } from "../../../schemas/repositories/repo.ts";
import { RefTable } from "./ref-table.ts";
import type { LiveRepo, RepoRow } from "./repo-state.ts";
import { packRows } from "./repo-upkeep.ts";

type WrittenRows = Record<string, RepoRow | null>;
type Content = DeepReadonly<{
  refs: [string, string][];
  packs: Pack[];
  treeDepth?: number | undefined;
}>;

/**
 * Sets the first content of a repository. No client knows the new repository yet, so the rules for pushes do not
 * apply.
 */
export function fill(live: LiveRepo, { refs, packs, treeDepth }: Content) {
  const table = new RefTable(new Map(), live);
  for (const [name, value] of refs) table.set(name, value);
  const filled: LiveRepo = {
    ...live,
    refs: table.count,
    refNamesBytes: table.namesBytes,
    packs: packs.length,
    ...(packs.length > 0 && { treeDepth: deeper(live, treeDepth) }),
    packsBytes: packs.reduce((sum, { bytes }) => sum + bytes, 0),
  };
  const written: WrittenRows = {
    ...packRows(packs, live.version),
    ...table.changedRows(live.version),
  };
  return { filled, written };
}

/**
 * Returns the depth of the directory tree after packs of depth `added` arrived. An `added` that was not measured
 * counts as TREE_DEPTH_MAX.
 */
export const deeper = ({ treeDepth }: LiveRepo, added: number = TREE_DEPTH_MAX) =>
  Math.max(treeDepth, added);

/**
 * Returns the depth to assume after a push whose depth was measured on top of a tree of depth `below`. If the tree is
 * deeper by now, the pushed directories may contain the deeper ones, so the difference is added.
 */
export const deeperSince = (
  live: LiveRepo,
  treeDepth: number = TREE_DEPTH_MAX,
  below: number = live.treeDepth,
) => Math.max(deeper(live, treeDepth), live.treeDepth + treeDepth - below);

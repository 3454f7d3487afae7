/** Decides whether each command of a push succeeds, against the current refs. */

import { ZERO_ID } from "../../../schemas/repositories/git-names.ts";
import {
  REF_NAMES_BYTES_MAX,
  REFS_MAX,
  REPO_BYTES_MAX,
  TREE_DEPTH_MAX,
} from "../../../schemas/repositories/limits.ts";
import {
  commandFault,
  type RefCommand,
  type RefResult,
} from "../../../schemas/repositories/ref-command.ts";
import type { HeldPack } from "../../../schemas/repositories/repo.ts";
import { RefTable } from "./ref-table.ts";
import { bytesOf } from "./repo-lfs.ts";
import type { LiveRepo, RepoRows } from "./repo-state.ts";
import { isOver } from "./repo-upkeep.ts";

/**
 * Limit for the packs of one repository. A push past it is refused until a compaction, which begins at COMPACT_PACKS
 * packs, has joined packs. At some 120 bytes per pack, the list of all packs fits one reply.
 */
export const REPO_PACKS_MAX = 2_000;

export interface Push {
  commands: readonly string[];
  atomic: boolean;
  generation: number;
  /** The indexes of the commands that are fast-forwards. */
  forward: readonly number[];
  /** The pushed packs that the repository does not have yet. */
  packs: readonly HeldPack[];
  /** Limit for the bytes of the repository after the push. */
  bytesMax?: number | undefined;
  /** Depth of the repository's directory tree after the push. */
  treeDepth: number;
}

interface Judgement {
  /** The results of the commands in order: one letter (RefResult) for each. */
  results: string;
  /** The refs with the changes of all accepted commands. */
  table: RefTable;
  /** True if an accepted command gives a ref a value, because the object may be in the pushed packs. */
  needsPacks: boolean;
}

export function judgePush(state: LiveRepo, rows: RepoRows, push: Push): Judgement {
  const commands = push.commands.map(readCommand);
  const times = new Map<string, number>();
  for (const { ref } of commands) times.set(ref, (times.get(ref) ?? 0) + 1);
  const forward = new Set(push.forward);
  const packsFault = packsFaultOf(state, push);
  const table = new RefTable(rows, state);
  let needsPacks = false;

  const results = commands.map((command, number): RefResult => {
    if (times.get(command.ref) !== 1) return "m";
    const fault = faultOf(command, forward.has(number));
    if (fault) return fault;
    if (command.value === command.old) return "o";
    table.set(command.ref, command.value);
    if (command.value !== ZERO_ID) needsPacks = true;
    return "o";
  });
  if (!push.atomic || results.every((result) => result === "o")) {
    return { results: results.join(""), table, needsPacks };
  }
  return {
    results: results.map((result) => (result === "o" ? "a" : result)).join(""),
    table: new RefTable(rows, state),
    needsPacks: false,
  };

  function faultOf(command: RefCommand, isForward: boolean): RefResult | undefined {
    if (state.readOnly) return "r";
    const { old, value, ref } = command;
    const { protectedRefs } = state;
    const head = headOf(state);
    const fault = commandFault(command, { tip: table.get(ref), protectedRefs, head, isForward });
    if (fault) return fault;
    const deletes = value === ZERO_ID;
    const makes = old === ZERO_ID && !deletes;
    if (!deletes && packsFault) return packsFault;
    if (!makes) return undefined;
    if (table.conflicts(ref)) return "c";
    return isRoomFor(table, ref) ? undefined : "t";
  }
}

export const headOf = ({ defaultBranch }: Pick<LiveRepo, "defaultBranch">) =>
  `refs/heads/${defaultBranch}`;

const ID_CHARS = ZERO_ID.length;

function readCommand(text: string): RefCommand {
  return {
    old: text.slice(0, ID_CHARS),
    value: text.slice(ID_CHARS + 1, 2 * ID_CHARS + 1),
    ref: text.slice(2 * ID_CHARS + 2),
  };
}

/** Returns why every command that gives a ref a value (all commands except deletions) is refused, or undefined. */
function packsFaultOf(
  state: LiveRepo,
  { packs, generation, treeDepth, bytesMax = REPO_BYTES_MAX }: Push,
): RefResult | undefined {
  if (generation !== state.generation) return "g";
  // If the hold of a pack has ended, the sweep may have deleted the pack.
  if (packs.some(isOver)) return "l";
  // Directories that other pushes added meanwhile may be nested in the directories of this push. If the tree may be
  // too deep, the gateway must measure its depth again.
  if (packs.length > 0 && treeDepth > TREE_DEPTH_MAX) return "g";
  const bytes = packs.reduce((sum, pack) => sum + pack.bytes, bytesOf(state));
  if (packs.length > 0 && bytes > bytesMax) return "q";
  if (packs.length > 0 && state.packs + packs.length > REPO_PACKS_MAX) return "k";
  return undefined;
}

function isRoomFor(table: RefTable, ref: string): boolean {
  const bytes = Buffer.byteLength(JSON.stringify(ref));
  return table.count < REFS_MAX && table.namesBytes + bytes <= REF_NAMES_BYTES_MAX;
}

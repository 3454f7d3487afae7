/** Decides what becomes of each command of a push, on the refs as they are. */

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
 * Packs of one repository: past them a push waits for compaction, which begins at COMPACT_PACKS. At some 120 bytes
 * they fit an answer.
 */
export const REPO_PACKS_MAX = 2_000;

export interface Push {
  commands: readonly string[];
  atomic: boolean;
  generation: number;
  /** Numbers of the commands that only add commits. */
  forward: readonly number[];
  /** Packs that the repository does not have yet. */
  packs: readonly HeldPack[];
  /** Bytes that the repository may have afterwards. */
  bytesMax?: number | undefined;
  /** Depth of the directory tree with these packs. */
  treeDepth: number;
}

interface Judgement {
  /** A letter for each command. */
  results: string;
  /** With the changes of all that were accepted. */
  table: RefTable;
  /** Whether anything that changes can need the packs. */
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

/** Returns the fault that refuses every command that may need the pushed objects. */
function packsFaultOf(
  state: LiveRepo,
  { packs, generation, treeDepth, bytesMax = REPO_BYTES_MAX }: Push,
): RefResult | undefined {
  if (generation !== state.generation) return "g";
  // The pack may have been swept after it was stored.
  if (packs.some(isOver)) return "l";
  // Directories that arrived meanwhile may be nested in these, so the gateway must look again.
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

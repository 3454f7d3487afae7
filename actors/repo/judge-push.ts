/** Decides what becomes of each command of a push, on the refs as they are. */
import {
  REF_NAMES_BYTES_MAX,
  REFS_MAX,
  REPO_BYTES_MAX,
  REPO_PACKS_MAX,
} from "../../schemas/git-limits.ts";
import { isProtected, refNameFault, ZERO_ID } from "../../schemas/git-names.ts";
import type { HeldPack, RefResult } from "../../schemas/repo.ts";
import { RefTable } from "./ref-table.ts";
import type { LiveRepo, RepoRows } from "./repo-state.ts";

export interface Push {
  commands: readonly string[];
  atomic: boolean;
  generation: number;
  /** Numbers of the commands that only add commits. */
  forward: readonly number[];
  /** Those the repository does not have. */
  packs: readonly HeldPack[];
  now: number;
}

export interface Judgement {
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

  function faultOf({ old, value, ref }: Command, isForward: boolean): RefResult | undefined {
    if (state.readOnly) return "r";
    if (refNameFault(ref) !== undefined) return "n";
    if (table.get(ref) !== old) return "f";
    const deletes = value === ZERO_ID;
    const makes = old === ZERO_ID && !deletes;
    if (isProtected(state.protectedRefs, ref)) {
      if (deletes && old !== ZERO_ID) return "d";
      if (old !== ZERO_ID && old !== value && !isForward) return "p";
    }
    if (!deletes && packsFault) return packsFault;
    if (!makes) return undefined;
    if (table.conflicts(ref)) return "c";
    return isRoomFor(table, ref) ? undefined : "t";
  }
}

interface Command {
  old: string;
  value: string;
  ref: string;
}

const ID_CHARS = ZERO_ID.length;

function readCommand(text: string): Command {
  return {
    old: text.slice(0, ID_CHARS),
    value: text.slice(ID_CHARS + 1, 2 * ID_CHARS + 1),
    ref: text.slice(2 * ID_CHARS + 2),
  };
}

/** What keeps every command out that may need the pushed objects. */
function packsFaultOf(state: LiveRepo, { packs, generation, now }: Push): RefResult | undefined {
  if (generation !== state.generation) return "g";
  // It may have been swept since it was stored.
  if (packs.some(({ until = now }) => until < now)) return "l";
  const bytes = packs.reduce((sum, pack) => sum + pack.bytes, state.packsBytes);
  if (packs.length > 0 && bytes > REPO_BYTES_MAX) return "q";
  if (packs.length > 0 && state.packs + packs.length > REPO_PACKS_MAX) return "k";
  return undefined;
}

function isRoomFor(table: RefTable, ref: string): boolean {
  const bytes = Buffer.byteLength(JSON.stringify(ref));
  return table.count < REFS_MAX && table.namesBytes + bytes <= REF_NAMES_BYTES_MAX;
}

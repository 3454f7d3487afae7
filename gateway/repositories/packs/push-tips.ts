/** Checks the new values of a push against the stored objects, and finds the fast-forwards. */
import { isProtected, isTag, ZERO_ID } from "../../../schemas/repositories/git-names.ts";
import {
  commandFault,
  REF_RESULTS,
  type RefCommand,
  refResultText,
} from "../../../schemas/repositories/ref-command.ts";
import type { Manifest } from "../cache/manifest-reader.ts";
import { isDeletion } from "../git/read-push.ts";
import { runGit } from "../process/git-process.ts";
import type { ObjectFolders } from "./tree-depth.ts";

/** Protected refs of one push whose old and new values are compared. Each comparison takes a process. */
const COMPARED_MAX = 50;

/**
 * Returns for each command why its ref cannot have the new value, or undefined. `known` has the types of objects that
 * the push brought.
 */
export async function tipFaults(
  commands: readonly RefCommand[],
  manifest: Manifest,
  known: ReadonlyMap<string, string>,
  { cwd, together }: ObjectFolders,
  signal: AbortSignal,
): Promise<(string | undefined)[]> {
  const types = new Map(known);
  for (const [ref, id] of manifest.refs) if (isBranch(ref)) types.set(id, "commit");
  const unknown = new Set(
    commands
      .filter((command) => !isDeletion(command) && !types.has(command.value))
      .map(({ value }) => value),
  );
  if (unknown.size > 0) {
    const { code, stdout, stderr } = await runGit(
      ["cat-file", "--batch-check=%(objectname) %(objecttype)"],
      {
        cwd,
        environment: together,
        input: `${[...unknown].join("\n")}\n`,
        signal,
      },
    );
    if (code !== 0) throw new Error(`Cannot look at the tips of a push: ${stderr}`);
    for (const line of stdout.toString("latin1").split("\n")) {
      const [id = "", type = "missing"] = line.split(" ");
      if (type !== "missing") types.set(id, type);
    }
  }
  return commands.map((command) => {
    if (isDeletion(command)) return undefined;
    const type = types.get(command.value);
    if (type === undefined) return "missing necessary objects";
    return isBranch(command.ref) && type !== "commit"
      ? "trying to write non-commit object to a branch"
      : undefined;
  });
}

/**
 * Returns for each command why the repository will refuse it, as far as the manifest shows, so that a useless pack is
 * not stored. An old value that is outdated in the manifest was current earlier; it will not become current again.
 */
export function foreseenFaults(
  commands: readonly RefCommand[],
  { protectedRefs, refs, head }: Manifest,
  forward: readonly number[],
): (string | undefined)[] {
  const times = new Map<string, number>();
  for (const { ref } of commands) times.set(ref, (times.get(ref) ?? 0) + 1);
  const isForward = new Set(forward);
  let compared = 0;
  return commands.map((command, number) => {
    const { ref } = command;
    if (times.get(ref) !== 1) return REF_RESULTS.m;
    const tip = refs.get(ref) ?? ZERO_ID;
    const standing = { tip, protectedRefs, head, isForward: isForward.has(number) };
    const fault = commandFault(command, standing);
    // The move of a protected tag is refused without a comparison.
    if (fault !== undefined && (fault !== "p" || isTag(ref))) return refResultText(fault, ref);
    if (fault === undefined && !standing.isForward) return undefined;
    // Counts every protected ref that would need a comparison, also those past the limit.
    compared += 1;
    if (compared > COMPARED_MAX) return "too many protected refs in one push; push it alone";
    return fault && refResultText(fault, ref);
  });
}

/**
 * Returns the indexes of the commands that fast-forward a protected ref. Compares at most COMPARED_MAX refs, and no
 * tags, because a protected tag never moves.
 */
export async function forwardCommands(
  commands: readonly RefCommand[],
  { protectedRefs, refs }: Manifest,
  { cwd, together }: ObjectFolders,
  signal: AbortSignal,
): Promise<number[]> {
  const compared = commands
    .map((command, number) => ({ ...command, number }))
    .filter((command) => !isDeletion(command) && refs.get(command.ref) === command.old)
    .filter(({ old, value }) => old !== value)
    .filter(({ ref }) => isProtected(protectedRefs, ref) && !isTag(ref))
    .slice(0, COMPARED_MAX);
  const forward: number[] = [];
  for (const { old, value, number } of compared) {
    const parameters = ["merge-base", "--is-ancestor", old, value];
    const { code } = await runGit(parameters, { cwd, environment: together, signal });
    if (code === 0) forward.push(number);
  }
  return forward;
}

const isBranch = (ref: string) => ref.startsWith("refs/heads/");

/** Holds the values a push gives to refs against the objects that are there, and tells which only add to what was. */
import { isProtected } from "../../schemas/git-names.ts";
import { runGit } from "./git-process.ts";
import type { Places } from "./inspect-pack.ts";
import type { Manifest } from "./manifest-reader.ts";
import { isDeletion, type PushCommand } from "./read-push.ts";

/** Protected refs of one push whose histories are compared; each is a process. */
const COMPARED_MAX = 50;

/** Why a ref cannot have its value, for each command; `known`: types of objects that the push brought. */
export async function tipFaults(
  commands: readonly PushCommand[],
  manifest: Manifest,
  known: ReadonlyMap<string, string>,
  { cwd, together }: Places,
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

/** Numbers of the commands that keep all commits of a protected ref. */
export async function forwardCommands(
  commands: readonly PushCommand[],
  { protectedRefs, refs }: Manifest,
  { cwd, together }: Places,
  signal: AbortSignal,
): Promise<number[]> {
  const compared = commands
    .map((command, number) => ({ ...command, number }))
    .filter((command) => !isDeletion(command) && refs.get(command.ref) === command.old)
    .filter(({ ref }) => isProtected(protectedRefs, ref))
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
